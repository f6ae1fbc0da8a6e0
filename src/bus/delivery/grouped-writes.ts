/**
 * Groups writes: one call is under way at a time, and all that arrive meanwhile share the next. An idle group writes at once; a
 * busy one writes more in each commit. With a rest, items without a waiter gather for that time after a call begins.
 *
 * 1. An item that PostgreSQL rejects does not affect the others of its group.
 * 2. While the database is away, items are kept and the call is repeated, until the signal aborts. So the results of deliveries
 *    survive a restart of the database. Repeated writes must be harmless.
 */
import { isRefusal } from '../../errors.ts';
import { persist, reconnect } from '../../kernel/backoff.ts';
import { Bell } from '../../kernel/bell.ts';
import { isolateRejected } from '../../kernel/isolate-rejected.ts';
import type { Time } from '../../kernel/time.ts';

interface Pending<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupedWritesOptions<Item, Answer> {
  /** Returns one answer for each item, in order. */
  readonly write: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly signal: AbortSignal;
  readonly time: Time;
  /** From the begin of one call to the next, unless `hurry` is called. */
  readonly restMs: number;
  readonly onRetry: (error: unknown) => void;
}

/** Items of one statement. */
const maxGroup = 1_000;

export class GroupedWrites<Item, Answer> {
  readonly #options: GroupedWritesOptions<Item, Answer>;
  #pending: Pending<Item, Answer>[] = [];
  #working: Promise<void> | undefined;
  readonly #bell: Bell;
  #begunMs = Number.NEGATIVE_INFINITY;
  #isHurried = false;

  constructor(options: GroupedWritesOptions<Item, Answer>) {
    this.#options = options;
    this.#bell = new Bell(options.time);
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ item, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** What was added is waited for: it does not rest. */
  hurry(): void {
    if (this.#pending.length === 0) return;
    this.#isHurried = true;
    this.#bell.ring();
  }

  /** Returns once everything that was added is written, or has failed. */
  async flush(): Promise<void> {
    this.hurry();
    await this.#working;
  }

  async #work(): Promise<void> {
    // items that are added in the same turn of the event loop share the first call
    await Promise.resolve();
    while (this.#pending.length > 0) {
      await this.#rest();
      this.#isHurried = false;
      await this.#write(this.#pending.splice(0, maxGroup));
    }
    this.#working = undefined;
  }

  async #rest(): Promise<void> {
    const { time, restMs, signal } = this.#options;
    const nowMs = time.now();
    if (nowMs >= this.#begunMs + restMs) this.#begunMs = nowMs;
    else {
      const leftMs = Math.min(restMs, this.#begunMs + restMs - nowMs);
      if (!this.#isHurried) await this.#bell.wait(leftMs, signal);
      this.#begunMs = time.now();
    }
  }

  async #write(group: readonly Pending<Item, Answer>[]): Promise<void> {
    const { write, signal, onRetry } = this.#options;
    const writeSome = async (some: readonly Pending<Item, Answer>[]): Promise<void> => {
      const answers = await write(some.map(({ item }) => item));
      some.forEach((pending, i) => pending.resolve(answers[i] as Answer));
    };
    try {
      const rejected = await persist(() => isolateRejected(group, writeSome, { isRejection: isRefusal }), {
        backoff: reconnect,
        signal,
        onRetry,
      });
      for (const [pending, error] of rejected) pending.reject(error);
    } catch (error) {
      // without effect on items that have an answer already
      for (const pending of group) pending.reject(error);
    }
  }
}
