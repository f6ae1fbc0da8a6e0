/** Bounds the values of people in one answer: each may be a megabyte, and an execution may have many. */
import { type Json, sizeOf } from '../../../flows/json.ts';

/** Names of values that did not fit. */
const maxCutNames = 100;

/** What values an answer still has room for. */
export class ValueBudget {
  readonly cut: string[] = [];
  #left: number;

  constructor(chars: number) {
    this.#left = chars;
  }

  /** The value, or null if it does not fit. */
  take(name: string, value: Json): Json {
    if (this.fits(value)) return value;
    if (this.cut.length < maxCutNames) this.cut.push(name);
    return null;
  }

  fits(value: Json): boolean {
    const size = sizeOf(value, this.#left);
    if (size > this.#left) return false;
    this.#left -= size;
    return true;
  }

  takeAll(prefix: string, values: Readonly<Record<string, Json>>): Record<string, Json> {
    return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, this.take(`${prefix}${key}`, value)]));
  }
}
