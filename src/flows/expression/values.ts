/**
 * The values that expressions compute with: JSON, moments, spans of time, and optional values.
 *
 * 1. All numbers are JSON numbers. A result that JSON cannot hold, such as infinity, is an error.
 * 2. Values of different types are never equal and have no order.
 * 3. A result that leaves an expression is JSON: a moment becomes `2026-01-31T12:00:00.000Z`, a span of time `90s`.
 */
import { type Json, sizeOf } from '../json.ts';

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
export type ExpressionErrorCode = 'expression_error' | 'expression_too_long';

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

/** Work that one evaluation may do, in units of about a node of an expression. Evaluation is total because it always ends. */
export class Fuel {
  #left: number;

  constructor(units: number) {
    this.#left = units;
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

export function equals(a: Value, b: Value, fuel: Fuel): boolean {
  fuel.spend(1);
  if (a === b) return true;
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime();
  if (a instanceof Span) return b instanceof Span && a.ms === b.ms;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, i) => equals(item, b[i] ?? null, fuel));
  if (!isMap(a) || !isMap(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equals(a[key] ?? null, b[key] ?? null, fuel));
}

/** Negative, zero or positive. Only values of one type that has an order can be compared. */
export function compare(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
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

/**
 * Parts of a value that leaves an expression, and characters of one that becomes text. No step may keep a larger value; a list that
 * holds the same value a thousand times would fill the memory before that is found.
 */
const maxParts = 1024 * 1024;
const maxTextChars = 4 * 1024 * 1024;

function tooLarge(): ExpressionError {
  return new ExpressionError('the result is too large', 'expression_too_long');
}

/** What leaves an expression. */
export function toJson(value: Value): Json {
  return partsOf(value, { left: maxParts });
}

function partsOf(value: Value, count: { left: number }): Json {
  count.left -= 1;
  if (count.left < 0) throw tooLarge();
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Span) return `${value.ms / 1_000}s`;
  if (value instanceof Optional)
    throw new ExpressionError('an optional value is not a result; end it with .orValue(…)');
  if (isList(value)) return value.map((item) => partsOf(item, count));
  if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, partsOf(item, count)]));
  return value;
}

/** The text of a value inside a longer text. */
export function toText(value: Value): string {
  const json = toJson(value);
  if (typeof json === 'string') return json;
  if (sizeOf(json, maxTextChars) > maxTextChars) throw tooLarge();
  return JSON.stringify(json);
}
