/**
 * Runs the errands of one queue: takes them, calls the handler of their name, and acknowledges them or puts them back.
 *
 * 1. It takes only as many errands as it can begin at once. So a loss is always a loss of work that had begun, and a kill blames no
 *    errand that only waited.
 * 2. Results of handlers that end together are written together (`Settlement`), while the next errands are taken.
 * 3. A handler that throws is tried again after a growing pause. An unknown name is treated alike: a newer release may know it.
 * 4. `quiet`: takes no more. `stop`: asks the handlers to end, waits for them until shortly before the deadline, and gives back
 *    what is left. The beat of the worker (`ErrandBeat`) must stop later.
 * 5. It also takes back what silent workers hold.
 *
 * A process may die at any line: what it held comes back, and a result that was not written is computed again.
 */
import { Bell } from '../kernel/bell.ts';
import { type Backoff, delayMs } from '../kernel/backoff.ts';
import { leftUntil, loop, type Service, within } from '../kernel/service.ts';
import { runningTime, type Time } from '../kernel/time.ts';
import { errandLimits, type ErrandQueue, type Errands, errandTimes, type TakenErrand } from './contract.ts';
import type { ErrandHold, HeldErrands } from './held.ts';
import { parseErrandKey } from './key.ts';
import { Settlement } from './settlement.ts';

/** An errand as its handler sees it. */
interface RunningErrand {
  readonly key: string;
  readonly args: readonly unknown[];
  /** Earlier failures. */
  readonly attempts: number;
  /** Aborts when the errand is lost or the runner stops. */
  readonly signal: AbortSignal;
  /** Notes that long work advances, so that later losses do not add up to earlier ones. */
  progress(): Promise<void>;
}

/** When to run it again. A reason means that it failed. */
export interface RunAgain {
  readonly runAt: number;
  readonly reason?: string;
}

/** Returns undefined when the errand is done. Must be safe to run twice. */
export type ErrandHandler = (errand: RunningErrand) => Promise<RunAgain | undefined>;

export interface RunnerOptions {
  readonly errands: Errands;
  readonly queue: ErrandQueue;
  readonly worker: string;
  readonly held: HeldErrands;
  /** By the names in the keys. */
  readonly handlers: Readonly<Record<string, ErrandHandler>>;
  readonly time: Time;
  readonly onError: (error: unknown) => void;
  /** So many errands came back from silent workers. */
  readonly onScrubbed?: (errands: number) => void;
  /** Handlers at work at once. */
  readonly places?: number;
}

const defaultPlaces = 32;
/** Errands made ready in one statement. */
const mostDue = 1_000;
/** A lost wake-up costs at most this. */
const pollMs = 5_000;
/** While errands are always ready, scheduled ones are looked for this often. */
const dueEveryMs = 250;
/** The part of the deadline that is kept to give back what handlers still work on. */
const giveBackMs = 500;
const retry: Backoff = { firstMs: 1_000, capMs: 60_000, jitter: 0.5 };

export class ErrandRunner {
  readonly service: Required<Service>;
  readonly #options: RunnerOptions;
  readonly #settlement: Settlement;
  readonly #bell = new Bell(runningTime);
  readonly #running = new Map<ErrandHold, Promise<void>>();
  readonly #places: number;
  #nextDueAt: number | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #scrubbedMs = Number.NEGATIVE_INFINITY;
  #isStopping = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#places = options.places ?? defaultPlaces;
    this.#settlement = new Settlement(options, () => this.wake());
    const { start, quiet, stop } = loop(`errands ${options.queue}`, (signal) => this.#pass(signal), options.onError);
    this.service = {
      name: `errands ${options.queue}`,
      start: () => {
        this.#isStopping = false;
        return start();
      },
      quiet,
      stop: async (deadlineMs = Number.POSITIVE_INFINITY) => {
        await stop();
        await this.#end(deadlineMs);
      },
    };
  }

  /** Errands may be ready. */
  wake(): void {
    this.#bell.ring();
  }

  /** The time of the next scheduled errand, as last seen. */
  nextDueAt(): number | undefined {
    return this.#nextDueAt;
  }

  isIdle(): boolean {
    return this.#running.size === 0 && this.#settlement.size === 0;
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { errands, queue, worker, time } = this.#options;
    const free = this.#countFree();
    if (free <= 0) return void (await this.#bell.wait(pollMs, signal));
    const taken = await errands.acquire(queue, worker, free, time.now());
    for (const errand of taken) this.#begin(errand);
    const moved = taken.length < free || performance.now() - this.#lookedMs >= dueEveryMs ? await this.#look() : 0;
    await this.#scrub();
    if (taken.length === free || moved > 0) return;
    const dueInMs = (this.#nextDueAt ?? Number.POSITIVE_INFINITY) - time.now();
    await this.#bell.wait(Math.max(1, Math.min(pollMs, dueInMs)), signal);
  }

  /** Errands are taken while the last ones are written, but no faster than that. */
  #countFree(): number {
    const running = this.#running.size;
    return Math.min(this.#places - running, 2 * this.#places - running - this.#settlement.size);
  }

  /** Makes due errands ready. Returns how many. */
  async #look(): Promise<number> {
    const { errands, queue, time } = this.#options;
    this.#lookedMs = performance.now();
    this.#nextDueAt = await errands.nextDue(queue);
    if (this.#nextDueAt === undefined || this.#nextDueAt > time.now()) return 0;
    return errands.due(queue, time.now(), mostDue);
  }

  async #scrub(): Promise<void> {
    if (performance.now() - this.#scrubbedMs < errandTimes.scrubMs) return;
    this.#scrubbedMs = performance.now();
    const { errands, queue, time, onScrubbed } = this.#options;
    const silentBefore = time.now() - errandTimes.silentMs;
    const back = await errands.scrub(queue, silentBefore, errandLimits.mostLosses);
    if (back === 0) return;
    onScrubbed?.(back);
    this.wake();
  }

  #begin(errand: TakenErrand): void {
    const hold = this.#options.held.hold(this.#options.queue, errand);
    const work = this.#work(hold, errand).finally(() => {
      this.#running.delete(hold);
      this.#bell.ring();
    });
    this.#running.set(hold, work);
  }

  /** Never rejects. */
  async #work(hold: ErrandHold, { attempts }: TakenErrand): Promise<void> {
    try {
      await hold.whenFree();
      const again = hold.isLost ? undefined : await this.#handle(hold, attempts);
      this.#settlement.add(hold, again);
    } catch (error) {
      this.#settlement.add(hold, this.#afterFailure(hold, attempts, error));
    }
  }

  async #handle(hold: ErrandHold, attempts: number): Promise<RunAgain | undefined> {
    const { errands, queue, worker, handlers } = this.#options;
    const { key } = hold;
    const work = parseErrandKey(key);
    const handler = work === undefined || !Object.hasOwn(handlers, work.name) ? undefined : handlers[work.name];
    if (work === undefined || handler === undefined) throw new Error(`no handler for the errand ${key}`);
    return handler({
      key,
      args: work.args,
      attempts,
      get signal() {
        return hold.signal;
      },
      progress: async () => void (await errands.progress(queue, worker, [hold])),
    });
  }

  #afterFailure(hold: ErrandHold, attempts: number, error: unknown): RunAgain {
    const now = this.#options.time.now();
    // a handler that was asked to end has not failed
    if (this.#isStopping) return { runAt: now };
    if (!hold.isLost) this.#options.onError(error);
    const reason = error instanceof Error ? error.message : String(error);
    return { runAt: Math.round(now + delayMs(retry, attempts)), reason };
  }

  async #end(deadlineMs: number): Promise<void> {
    this.#isStopping = true;
    for (const hold of this.#running.keys()) hold.abort();
    await within(leftUntil(deadlineMs - giveBackMs), Promise.all(this.#running.values()));
    const now = this.#options.time.now();
    for (const hold of this.#running.keys()) this.#settlement.add(hold, { runAt: now });
    await this.#settlement.finish(deadlineMs);
  }
}
