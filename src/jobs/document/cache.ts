/**
 * Parsed documents of one tenant by (job, version). They never change, and a large one takes long to parse.
 *
 * 1. The least recently used go first, once there are too many or the texts that they came from are too long together.
 * 2. Missing documents are read by one request at a time: requests that want the same one do not parse it twice, and
 *    requests that wait hold no text.
 */
import { makeSerial } from '../../kernel/serial.ts';
import type { JsonObject, TaskDefinition } from '../definition.ts';

export interface CachedJob {
  readonly tasks: ReadonlyMap<string, TaskDefinition>;
  readonly params: JsonObject;
  /** Characters of its document. */
  readonly chars: number;
}

const maxJobs = 100;
/** Parsed, a character takes up to ten bytes: 80 MB for a tenant at worst. */
const maxChars = 8_000_000;

export class DocumentCache {
  readonly #jobs = new Map<string, CachedJob>();
  #chars = 0;
  /** Does the work once the work before it is over, whether or not that succeeded. */
  readonly inTurn = makeSerial();

  get size(): number {
    return this.#jobs.size;
  }

  get(key: string): CachedJob | undefined {
    const job = this.#jobs.get(key);
    if (job !== undefined) this.set(key, job);
    return job;
  }

  set(key: string, job: CachedJob): void {
    this.#delete(key);
    this.#jobs.set(key, job);
    this.#chars += job.chars;
    for (const oldest of this.#jobs.keys()) {
      if (this.#jobs.size <= maxJobs && (this.#chars <= maxChars || this.#jobs.size === 1)) return;
      this.#delete(oldest);
    }
  }

  #delete(key: string): void {
    this.#chars -= this.#jobs.get(key)?.chars ?? 0;
    this.#jobs.delete(key);
  }
}
