/**
 * The consumers of one subscriber take turns in this process: one looks for a batch, and the others wait in line. So a thousand
 * consumers cost as much as one. Without turns, each of them would read the subscription four times a second, and all of them
 * would gather the batch that one of them gets.
 */
import { type Permit, Semaphore } from '../../../kernel/semaphore.ts';

interface Line {
  readonly turn: Semaphore;
  consumers: number;
}

export class PullTurns {
  readonly #lines = new Map<string, Line>();

  /** Subscribers with a consumer. */
  get size(): number {
    return this.#lines.size;
  }

  /** Waits for the turn. Returns undefined if the signal aborts first. */
  async take(subscriber: string, signal: AbortSignal): Promise<Permit | undefined> {
    const line = this.#lines.get(subscriber) ?? { turn: new Semaphore(1), consumers: 0 };
    this.#lines.set(subscriber, line);
    line.consumers++;
    const permit = await line.turn.take(signal);
    if (permit === undefined) this.#leave(subscriber, line);
    return (
      permit && {
        release: () => {
          permit.release();
          this.#leave(subscriber, line);
        },
      }
    );
  }

  #leave(subscriber: string, line: Line): void {
    line.consumers--;
    if (line.consumers === 0) this.#lines.delete(subscriber);
  }
}
