/**
 * The delivery log: every failed attempt, and at most 100 successes a second. Rows are written in batches. They serve people, not
 * safety: a courier that dies loses those of the last moments.
 */
import type { DeliveryRow } from '../store.ts';

export const deliveryLogLimits = {
  /** Successes within a second that are kept. */
  successes: 100,
  /** Rows of one statement. */
  rows: 500,
  /** Rows that wait for the database. Beyond that, successes are dropped first, then everything. */
  waiting: 5_000,
} as const;

export class DeliveryLog {
  readonly #write: (rows: readonly DeliveryRow[]) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #rows: DeliveryRow[] = [];
  #second = 0;
  #successes = 0;
  #writing: Promise<void> | undefined;

  constructor(write: (rows: readonly DeliveryRow[]) => Promise<void>, onError: (error: unknown) => void) {
    this.#write = write;
    this.#onError = onError;
  }

  note(row: DeliveryRow, isSuccess: boolean): void {
    if (this.#rows.length >= deliveryLogLimits.waiting) return;
    if (isSuccess && !this.#isSampled(row.atMs)) return;
    this.#rows.push(row);
  }

  #isSampled(atMs: number): boolean {
    const second = Math.floor(atMs / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#successes = 0;
    }
    this.#successes += 1;
    return this.#successes <= deliveryLogLimits.successes;
  }

  /** Writes what was noted. Calls share a write that is under way. */
  async flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#rows.length > 0) {
      const rows = this.#rows.splice(0, deliveryLogLimits.rows);
      try {
        await this.#write(rows);
      } catch (error) {
        this.#onError(error);
        return;
      }
    }
  }
}
