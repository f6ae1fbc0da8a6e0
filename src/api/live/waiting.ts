/**
 * Limits the requests of one caller that wait for something. Each of them looks at the database again and again, so a thousand of
 * one key would delay the requests of all others.
 */
import { actorOf, type Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';

/** As many as a key may have streams. */
const usualMax = 100;

export class WaitingRequests {
  readonly #max: number;
  readonly #waiting = new Map<string, number>();

  constructor(max = usualMax) {
    this.#max = max;
  }

  /** Does the work. Throws `too_many` instead if the caller has too many under way. */
  async during<T>(caller: Caller | undefined, work: () => Promise<T>): Promise<T> {
    const name = nameOf(caller);
    const waiting = this.#waiting.get(name) ?? 0;
    if (waiting >= this.#max) {
      const detail = `${this.#max} requests of this key wait already; let some of them end first`;
      throw new MillraceError('too_many', detail, { headers: { 'retry-after': '1' } });
    }
    this.#waiting.set(name, waiting + 1);
    try {
      return await work();
    } finally {
      const left = (this.#waiting.get(name) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(name);
      else this.#waiting.set(name, left);
    }
  }
}

/** Sessions of one person count together. */
function nameOf(caller: Caller | undefined): string {
  if (caller === undefined) return '';
  return caller.kind === 'key' ? (caller.keyId ?? caller.actor) : actorOf(caller);
}
