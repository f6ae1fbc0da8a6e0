/**
 * Tenants take turns: each interprets messages for some milliseconds, then the event loop runs, then the next tenant is called. So
 * neither a tenant with much work nor the interpreter as a whole keeps others waiting.
 */

export interface TurnTaker {
  /** Works for a moment. Returns whether it wants another turn. Never throws. */
  turn(): boolean;
}

export class Turns {
  readonly #line = new Set<TurnTaker>();
  #isScheduled = false;

  /** Its turn comes in one of the next rounds of the event loop. */
  ask(taker: TurnTaker): void {
    this.#line.add(taker);
    this.#schedule();
  }

  leave(taker: TurnTaker): void {
    this.#line.delete(taker);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#line.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#pass();
    });
  }

  #pass(): void {
    const [first] = this.#line;
    if (first === undefined) return;
    this.#line.delete(first);
    if (first.turn()) this.#line.add(first);
    this.#schedule();
  }
}
