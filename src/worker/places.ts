/**
 * The places of a worker. Each is in one state:
 *
 *   free   → asked   when a poll or a report asks for a run to fill it
 *   asked  → taken   when the answer has a run for it
 *   asked  → free    when the answer has none
 *   taken  → free    when its run has ended
 *
 * A report asks only for places that no poll asks for, and the next poll only for places that no report asks for.
 */
export class Places {
  readonly #max: number;
  #taken = 0;
  /** Places that polls ask for, and places that reports ask for. */
  #polled = 0;
  #reported = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** The number of places for the next poll, which replaces the poll under way. */
  get free(): number {
    return Math.max(0, this.#max - this.#taken - this.#reported);
  }

  take(): void {
    this.#taken++;
  }

  leave(): void {
    this.#taken--;
  }

  /** A poll asks for this many places until the returned function is called. */
  poll(places: number): () => void {
    this.#polled += places;
    return () => void (this.#polled -= places);
  }

  /** A report asks for all places that no poll or report asks for, until `settle`. */
  report(): { readonly free: number; readonly settle: () => void } {
    const free = Math.max(0, this.free - this.#polled);
    this.#reported += free;
    return { free, settle: () => void (this.#reported -= free) };
  }
}
