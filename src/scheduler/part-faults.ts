/**
 * Tracks which parts of a scheduler do not work. A part is one duty: firing triggers, offering runs, forgetting old runs.
 *
 * 1. A part has a fault from a failed attempt until the next success, and while one attempt takes too long.
 * 2. `failingMs` covers attempts only: the fault of a part that failed once and was not tried again does not grow older.
 * 3. An attempt covers work only, no waiting. A finished step counts as progress: an attempt with progress does not hang.
 *
 * Durations are measured with this machine's monotonic clock, so that a change of the database's clock has no effect.
 */
import type { PartFault } from '../contract/engine.ts';
import type { Time } from '../kernel/time.ts';

export interface Part {
  /** What the part does, in words: "firing triggers". */
  readonly doing: string;
  readonly isVital: boolean;
  /** Errors that do not count as failures of this part; they are thrown on. */
  readonly ignores?: (error: unknown) => boolean;
}

/** Records that a step of an attempt is done. */
export type Progress = () => void;

interface Moment {
  readonly at: Date;
  readonly ownMs: number;
}

interface Attempt {
  readonly began: Moment;
  /** The last step that was done, or the beginning. */
  progressed: Moment;
}

interface Failures {
  /** The beginning of the first failed attempt since the last success. */
  readonly began: Moment;
  readonly lastOwnMs: number;
  readonly message: string;
}

interface Standing {
  readonly part: Part;
  /** Several, because firing has two attempts under way at a time. */
  readonly underWay: Set<Attempt>;
  failures: Failures | undefined;
}

/** An attempt without progress for this long counts as a fault. Vital work is done in batches of far less than a second. */
const slowMs = 3_000;
/** The same for parts that are not vital: their work may be long, and waits in line among the tenants of a host. */
const slowHousekeepingMs = 660_000;

export class PartFaults {
  readonly #time: Time;
  readonly #parts = new Map<string, Standing>();

  constructor(time: Time) {
    this.#time = time;
  }

  async attempt<T>(part: Part, work: (progress: Progress) => Promise<T>): Promise<T> {
    const began = this.#now();
    const standing = this.#standingOf(part);
    const attempt: Attempt = { began, progressed: began };
    standing.underWay.add(attempt);
    try {
      const result = await work(() => (attempt.progressed = this.#now()));
      standing.failures = undefined;
      return result;
    } catch (error) {
      if (part.ignores?.(error) !== true) this.#note(standing, attempt, error);
      throw error;
    } finally {
      standing.underWay.delete(attempt);
    }
  }

  /** Records a failure that was noticed outside of an attempt. */
  fail(part: Part, error: unknown): void {
    const began = this.#now();
    this.#note(this.#standingOf(part), { began, progressed: began }, error);
  }

  /** Forgets the failures of a part: the work that failed is no longer needed. */
  clear(part: Part): void {
    this.#standingOf(part).failures = undefined;
  }

  current(): readonly PartFault[] {
    const nowMs = performance.now();
    return [...this.#parts.values()].flatMap((standing) => faultOf(standing, nowMs) ?? []);
  }

  #note(standing: Standing, { began }: Attempt, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    standing.failures = { began: standing.failures?.began ?? began, lastOwnMs: performance.now(), message };
  }

  #standingOf(part: Part): Standing {
    const known = this.#parts.get(part.doing);
    if (known !== undefined) return known;
    const standing: Standing = { part, underWay: new Set(), failures: undefined };
    this.#parts.set(part.doing, standing);
    return standing;
  }

  #now(): Moment {
    return { at: new Date(this.#time.now()), ownMs: performance.now() };
  }
}

function faultOf({ part: { doing, isVital }, underWay, failures }: Standing, nowMs: number): PartFault | undefined {
  const allowedMs = isVital ? slowMs : slowHousekeepingMs;
  const slow = [...underWay].find(({ progressed }) => nowMs - progressed.ownMs >= allowedMs);
  const underWayMs = slow && nowMs - slow.progressed.ownMs;
  const about = { doing, isVital, ...(underWayMs !== undefined && { underWayMs }) };
  if (failures !== undefined) {
    const { began, lastOwnMs, message } = failures;
    const goesOn = slow !== undefined && slow.progressed === slow.began;
    const failingMs = Math.max((goesOn ? nowMs : lastOwnMs) - began.ownMs, underWayMs ?? 0);
    return { ...about, since: began.at, failingMs, message };
  }
  return slow && { ...about, since: slow.progressed.at, failingMs: underWayMs ?? 0, message: null };
}
