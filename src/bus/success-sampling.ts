/** Limits the successes that the delivery log keeps each second. Failures are all kept. */
const maxPerSecond = 100;

export class SuccessSampling {
  #second = 0;
  #count = 0;

  /** Whether a success at this time is kept. */
  takes(atMs: number): boolean {
    const second = Math.floor(atMs / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= maxPerSecond;
  }
}
