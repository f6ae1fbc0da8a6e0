/**
 * Writes the results of errands: those that end together in one ack and one nack. One write is under way at a time; what ends
 * meanwhile is written next.
 *
 * An errand is named by beats until its write is answered. A write that fails is repeated; if it had been committed after all, the
 * repeated one finds nothing and changes nothing. Results of lost errands are dropped.
 */
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { leftUntil, pause, within } from '../kernel/service.ts';
import type { ErrandQueue, Errands, ReturnedErrand } from './contract.ts';
import type { ErrandHold } from './held.ts';

export interface SettlementOptions {
  readonly errands: Pick<Errands, 'ack' | 'nack'>;
  readonly queue: ErrandQueue;
  readonly worker: string;
  readonly onError: (error: unknown) => void;
}

interface Result {
  readonly hold: ErrandHold;
  /** Undefined: done. */
  readonly again: { readonly runAt: number; readonly reason?: string } | undefined;
}

export class Settlement {
  readonly #options: SettlementOptions;
  readonly #onWritten: () => void;
  readonly #settled = new WeakSet<ErrandHold>();
  #results: Result[] = [];
  #underWay = 0;
  #writing: Promise<void> | undefined;
  #giveUp = new AbortController();

  /** `onWritten` is called after each write. */
  constructor(options: SettlementOptions, onWritten: () => void) {
    this.#options = options;
    this.#onWritten = onWritten;
  }

  /** Errands whose result is not written yet. */
  get size(): number {
    return this.#results.length + this.#underWay;
  }

  /** Notes the result of an errand. The first one counts: an errand that was given back may end later. */
  add(hold: ErrandHold, again: Result['again']): void {
    if (hold.isLost || this.#settled.has(hold)) return hold.release();
    this.#settled.add(hold);
    hold.settle();
    this.#results.push({ hold, again });
    this.#writing ??= this.#write();
  }

  /**
   * Returns once all is written, or at the deadline. Errands whose outcome is not written by then come back as those of a silent
   * worker.
   */
  async finish(deadlineMs: number): Promise<void> {
    await within(leftUntil(deadlineMs), this.#writing ?? Promise.resolve());
    this.#giveUp.abort();
    this.#giveUp = new AbortController();
    for (const { hold } of this.#results.splice(0)) hold.release();
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const { signal } = this.#giveUp;
    // lets all handlers of this turn end
    await new Promise((resolve) => void setImmediate(resolve));
    for (let failures = 0; this.#results.length > 0 && !signal.aborted; ) {
      const results = this.#results;
      this.#results = [];
      this.#underWay = results.length;
      try {
        await this.#writeAll(results);
        failures = 0;
        for (const { hold } of results) hold.release();
      } catch (error) {
        this.#results = [...results, ...this.#results];
        this.#options.onError(error);
        await pause(delayMs(reconnect, failures++), signal);
      } finally {
        this.#underWay = 0;
        this.#onWritten();
      }
    }
    this.#writing = undefined;
  }

  async #writeAll(results: readonly Result[]): Promise<void> {
    const { errands, queue, worker } = this.#options;
    const done = results.flatMap(({ hold, again }) =>
      again === undefined ? { key: hold.key, lease: hold.lease } : [],
    );
    const back = results.flatMap(({ hold: { key, lease }, again }): ReturnedErrand[] =>
      again === undefined ? [] : [{ key, lease, ...again }],
    );
    await Promise.all([errands.ack(queue, worker, done), errands.nack(queue, worker, back)]);
  }
}
