/**
 * The errands that a courier holds for one tenant, and the work on each.
 *
 * 1. An errand has one piece of work at a time. If the courier wins back an errand whose former work still runs, that work is
 *    aborted, and the new work begins when it has ended.
 * 2. An errand whose work ended without ending the errand is given back.
 */
import type { ErrandQueue, HeldErrand, NamedErrand } from '../../errands/contract.ts';
import { Bell } from '../../kernel/bell.ts';
import type { Time } from '../../kernel/time.ts';
import type { DeliveryEnd, Signals } from './strand-delivery.ts';

/** Does the work of an errand. `kept`: it did not end the errand, which is to be given back. */
export type ErrandWork = (errand: HeldErrand, signals: Signals, bell: Bell) => Promise<DeliveryEnd>;

interface Holding extends NamedErrand {
  readonly quiet: AbortController;
  readonly abort: AbortController;
  readonly bell: Bell;
  readonly running: Promise<void>;
}

export interface HoldingsOptions {
  readonly time: Time;
  readonly work: ErrandWork;
  /** Work ended: its errand is gone (`over`), still held (`kept`), or the work failed. */
  readonly onEnd: (errand: NamedErrand, end: DeliveryEnd | { readonly error: unknown }) => void;
}

export class Holdings {
  readonly #options: HoldingsOptions;
  readonly #byKey = new Map<string, Holding>();

  constructor(options: HoldingsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** As a beat names them. */
  named(): NamedErrand[] {
    return [...this.#byKey.values()].map(({ queue, key, lease }) => ({ queue, key, lease }));
  }

  take(queue: ErrandQueue, { key, lease }: HeldErrand): void {
    const former = this.#byKey.get(key);
    if (former?.lease === lease) return;
    former?.abort.abort();
    const quiet = new AbortController();
    const abort = new AbortController();
    const bell = new Bell(this.#options.time);
    const errand = { queue, key, lease };
    const running = (former?.running ?? Promise.resolve()).then(() =>
      this.#work(errand, { quiet: quiet.signal, abort: abort.signal }, bell),
    );
    this.#byKey.set(key, { ...errand, quiet, abort, bell, running });
  }

  async #work(errand: NamedErrand, signals: Signals, bell: Bell): Promise<void> {
    let end: DeliveryEnd | { readonly error: unknown };
    try {
      end = signals.abort.aborted ? 'over' : await this.#options.work(errand, signals, bell);
    } catch (error) {
      end = { error };
    }
    const holding = this.#byKey.get(errand.key);
    // a newer holding of the same errand waits for this one to end
    if (holding?.lease === errand.lease) this.#byKey.delete(errand.key);
    this.#options.onEnd(errand, signals.abort.aborted ? 'over' : end);
  }

  ring(key: string): void {
    this.#byKey.get(key)?.bell.ring();
  }

  ringAll(): void {
    for (const { bell } of this.#byKey.values()) bell.ring();
  }

  /** These errands passed on to others: the work on them has no effect any more. */
  lose(errands: readonly NamedErrand[]): void {
    for (const { key, lease } of errands) {
      const holding = this.#byKey.get(key);
      if (holding?.lease === lease) holding.abort.abort();
    }
  }

  /** Ends the work on up to so many errands after their current batch; they are given back. */
  release(count: number): void {
    for (const { quiet } of [...this.#byKey.values()].slice(-count)) quiet.abort();
  }

  quietAll(): void {
    for (const { quiet } of this.#byKey.values()) quiet.abort();
  }

  abortAll(): void {
    for (const { abort } of this.#byKey.values()) abort.abort();
  }

  /** Returns when all work that is under way has ended. */
  async settled(): Promise<void> {
    while (this.#byKey.size > 0) await Promise.all([...this.#byKey.values()].map(({ running }) => running));
  }
}
