/**
 * The places of a worker. Each is in one state:
 *
 *   free   → asked   when a poll or a report that is sent asks for a run to fill it
 *   asked  → taken   when the answer has a run for it
 *   asked  → free    when the answer has none
 *   taken  → free    when its run has ended
 *
 * A report asks only for places that no poll asks for, and the next poll only for those that no report does.
 */
export class Places {
  readonly #max: number;
  #taken = 0;
  /** Places that polls, and reports, ask for. */
  #polled = 0;
  #reported = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many the next poll asks for. It takes the place of the poll that is under way. */
  get free(): number {
    return Math.max(0, this.#max - this.#taken - this.#reported);
  }

  take(): void {
    this.#taken++;
  }

  leave(): void {
    this.#taken--;
  }

  /** A poll asks for so many places until the returned function is called. */
  poll(places: number): () => void {
    this.#polled += places;
    return () => void (this.#polled -= places);
  }

  /** A report asks for all places that nobody asks for, until `settle`. */
  report(): { readonly free: number; readonly settle: () => void } {
    const free = Math.max(0, this.free - this.#polled);
    this.#reported += free;
    return { free, settle: () => void (this.#reported -= free) };
  }
}
