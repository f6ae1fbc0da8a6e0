/**
 * The delivery log: every failed attempt, and at most 100 successes a second. Rows are written in batches. They serve people, not
 * safety: a courier that dies loses those of the last moments. The counts by minute, of all attempts, are written with them.
 */
import type { BusStore, DeliveryRow } from '../../store.ts';
import { SuccessSampling } from '../../success-sampling.ts';
import { SubscriberMinutes } from './subscriber-minutes.ts';

const deliveryLogLimits = {
  /** Rows of one statement. */
  rows: 500,
  /** Rows that wait for the database. Beyond that, successes are dropped first, then everything. */
  waiting: 5_000,
} as const;

export class DeliveryLog {
  readonly #store: Pick<BusStore, 'noteDeliveries' | 'countMinutes'>;
  readonly #onError: (error: unknown) => void;
  readonly #minutes = new SubscriberMinutes();
  #rows: DeliveryRow[] = [];
  readonly #sampling = new SuccessSampling();
  #writing: Promise<void> | undefined;

  constructor(store: Pick<BusStore, 'noteDeliveries' | 'countMinutes'>, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  /** `latenciesMs`: from the acceptance of each event to this attempt. */
  note(row: DeliveryRow, isSuccess: boolean, latenciesMs: readonly number[]): void {
    this.#minutes.count({ subscriber: row.subscriber, atMs: row.atMs, isSuccess, latenciesMs });
    if (this.#rows.length >= deliveryLogLimits.waiting) return;
    if (isSuccess && !this.#sampling.takes(row.atMs)) return;
    this.#rows.push(row);
  }

  /** Writes what was noted. Calls share a write that is under way. */
  async flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      const minutes = this.#minutes.take();
      if (minutes.length > 0) await this.#store.countMinutes(minutes);
      while (this.#rows.length > 0) await this.#store.noteDeliveries(this.#rows.splice(0, deliveryLogLimits.rows));
    } catch (error) {
      this.#onError(error);
    }
  }
}
