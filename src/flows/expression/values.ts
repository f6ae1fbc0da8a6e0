/**
 * The values that expressions compute with: JSON, moments, spans of time, and optional values.
 *
 * 1. All numbers are JSON numbers. A result that JSON cannot hold, such as infinity, is an error.
 * 2. Values of different types are never equal and have no order.
 * 3. A result that leaves an expression is JSON: a moment becomes `2026-01-31T12:00:00.000Z`, a span of time `90s`.
 */
import type { Json } from '../json.ts';

export class Span {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }
}

/** The result of `f.?x`: a value, or none. */
export class Optional {
  readonly value: Value | undefined;

  constructor(value: Value | undefined) {
    this.value = value;
  }
}

export type Value =
  | null
  | boolean
  | number
  | string
  | Date
  | Span
  | Optional
  | readonly Value[]
  | { readonly [key: string]: Value };

export type ValueMap = Readonly<Record<string, Value>>;

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

export function isMap(value: Value): value is ValueMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isSpecial(value);
}

function isSpecial(value: object): boolean {
  return value instanceof Date || value instanceof Span || value instanceof Optional;
}

/** Codes of errors at evaluation. Steps fail with these codes. */
export type ExpressionErrorCode = 'expression_error' | 'expression_too_long' | 'too_large';

export class ExpressionError extends Error {
  readonly code: ExpressionErrorCode;

  constructor(message: string, code: ExpressionErrorCode = 'expression_error') {
    // `all` and `exists` catch the error of each item: a stack for each made a fault of a document cost seconds
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ExpressionError';
    this.code = code;
  }
}

/**
 * Work that one evaluation may do, in units of about a node of an expression: 100,000 units take 30 ms at most. Evaluation is total
 * because it always ends.
 */
export class Fuel {
  #left: number;
  /** Characters of results, as JSON. */
  resultChars = 0;
  /** Patterns that this evaluation has compiled: only the first use of one is expensive. */
  readonly patterns = new Set<string>();

  constructor(units: number) {
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new ExpressionError('the expression takes too long', 'expression_too_long');
  }

  /** For work in proportion to a text. */
  spendText(characters: number): void {
    this.spend(1 + characters / 256);
  }
}

export function typeOf(value: Value): string {
  if (value === null) return 'null';
  if (value instanceof Date) return 'timestamp';
  if (value instanceof Span) return 'duration';
  if (value instanceof Optional) return 'optional';
  if (isList(value)) return 'list';
  if (typeof value === 'object') return 'map';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

const keyLists = new WeakMap<object, readonly string[]>();
/** From this many keys on, they are listed once for each map: an expression may ask for them for every item of a list. */
const manyKeys = 64;

export function keysOf(map: ValueMap, fuel: Fuel): readonly string[] {
  const known = keyLists.get(map);
  const keys = known ?? Object.keys(map);
  if (known === undefined && keys.length >= manyKeys) keyLists.set(map, keys);
  fuel.spend(1 + keys.length / manyKeys);
  return keys;
}

export function equals(a: Value, b: Value, fuel: Fuel): boolean {
  fuel.spend(1);
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length !== b.length) return false;
    fuel.spendText(a.length);
    return a === b;
  }
  if (a === b) return true;
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime();
  if (a instanceof Span) return b instanceof Span && a.ms === b.ms;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, i) => equals(item, b[i] ?? null, fuel));
  if (!isMap(a) || !isMap(b)) return false;
  const keys = keysOf(a, fuel);
  if (keys.length !== keysOf(b, fuel).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equals(a[key] ?? null, b[key] ?? null, fuel));
}

/** Negative, zero or positive. Only values of one type that has an order can be compared. */
export function compare(a: Value, b: Value, fuel: Fuel): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') {
    fuel.spendText(Math.min(a.length, b.length));
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime();
  if (a instanceof Span && b instanceof Span) return a.ms - b.ms;
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  throw new ExpressionError(`${typeOf(a)} and ${typeOf(b)} have no order`);
}

/** JSON has no infinity and no NaN. */
export function finite(value: number, what: string): number {
  if (!Number.isFinite(value)) throw new ExpressionError(`${what} is not a number that JSON can hold`);
  // -0 is 0 in JSON
  return value === 0 ? 0 : value;
}

export function moment(ms: number): Date {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) throw new ExpressionError('the moment is out of range');
  return date;
}

/** Of a value that leaves an expression, as JSON. */
export const resultLimits = { chars: 1024 * 1024, depth: 200 } as const;

/**
 * What leaves an expression. Lists and maps are copied, and a value may hold the same list many times: what is copied costs fuel, and
 * the whole is bounded.
 */
export function toJson(value: Value, fuel: Fuel): Json {
  return new Result(fuel).copy(value, 0);
}

/** Assigning to `__proto__` would change what the object inherits. */
const ownMember = { enumerable: true, configurable: true, writable: true } as const;

class Result {
  readonly #fuel: Fuel;
  #chars = 0;

  constructor(fuel: Fuel) {
    this.#fuel = fuel;
  }

  copy(value: Value, depth: number): Json {
    if (typeof value === 'string') {
      this.#count(value.length + 2);
      return value;
    }
    if (value instanceof Date) return value.toISOString();
    if (value instanceof Span) return `${value.ms / 1_000}s`;
    if (value instanceof Optional)
      throw new ExpressionError('an optional value is not a result; end it with .orValue(…)');
    if (isList(value)) return this.#copyList(value, depth);
    if (isMap(value)) return this.#copyMap(value, depth);
    this.#count(4);
    return value;
  }

  #copyList(items: readonly Value[], depth: number): Json {
    this.#enter(items.length, depth);
    this.#fuel.spend(1 + items.length / 8);
    return items.map((item) => this.copy(item, depth + 1));
  }

  #copyMap(map: ValueMap, depth: number): Json {
    const keys = keysOf(map, this.#fuel);
    this.#enter(keys.length, depth);
    this.#fuel.spend(1 + keys.length / 2);
    // faster than `Object.fromEntries`
    const copy: Record<string, Json> = {};
    for (const key of keys) {
      this.#count(key.length + 3);
      const value = this.copy(map[key] ?? null, depth + 1);
      if (key === '__proto__') Object.defineProperty(copy, key, { ...ownMember, value });
      else copy[key] = value;
    }
    return copy;
  }

  #enter(length: number, depth: number): void {
    if (depth >= resultLimits.depth)
      throw new ExpressionError(`the result is nested more than ${resultLimits.depth} deep`, 'too_large');
    this.#count(length + 2);
  }

  /** Whatever leaves an expression is stored or sent. */
  #count(chars: number): void {
    this.#chars += chars;
    checkChars(this.#chars);
    this.#fuel.resultChars += chars;
    this.#fuel.spend(chars / 64);
  }
}

export function checkChars(chars: number): void {
  if (chars > resultLimits.chars)
    throw new ExpressionError(`the result has more than ${resultLimits.chars} characters as JSON`, 'too_large');
}

/** The text of a value inside a longer text. */
export function toText(value: Value, fuel: Fuel): string {
  const json = toJson(value, fuel);
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  fuel.spendText(text.length);
  return text;
}

/** A value in the message of an error. Never a part of a text: it may be the part of a sealed one, which nobody would recognize. */
export function brief(value: Value): string {
  if (typeof value === 'string')
    return value.length > 100 ? `a text of ${value.length} characters` : JSON.stringify(value);
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  return `a ${typeOf(value)}`;
}
