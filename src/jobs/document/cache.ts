/**
 * Caches the parsed documents of one tenant by (job, version). A stored version never changes, and a large one takes long to
 * parse.
 *
 * 1. The least recently used documents are evicted when there are too many, or when their texts are too long in total.
 * 2. One request at a time reads missing documents. So a document is not parsed twice, and waiting requests hold no text.
 */
import { makeSerial } from '../../kernel/serial.ts';
import type { JsonObject, TaskDefinition } from '../definition.ts';

export interface CachedJob {
  readonly tasks: ReadonlyMap<string, TaskDefinition>;
  readonly params: JsonObject;
  /** Length of the document's text, in characters. */
  readonly chars: number;
}

const maxJobs = 100;
/** Total length of the cached texts. A parsed character takes up to ten bytes: at most 80 MB for a tenant. */
const maxChars = 8_000_000;

export class DocumentCache {
  readonly #jobs = new Map<string, CachedJob>();
  #chars = 0;
  /** Runs the work after the previous work has ended, successfully or not. */
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
