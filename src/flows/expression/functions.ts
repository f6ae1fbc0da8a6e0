/**
 * The functions and methods of expressions. None reaches the host, and each spends fuel in proportion to its work.
 *
 * A method is a function whose first argument is its receiver: `f.name.trim()`.
 */
import { parseDuration } from '../../kernel/text/duration.ts';
import { readInstant } from '../../documents/values.ts';
import { dateParts } from './date-parts.ts';
import { matchPattern } from './patterns.ts';
import {
  brief,
  compare,
  equals,
  ExpressionError,
  finite,
  type Fuel,
  isList,
  isMap,
  keysOf,
  moment,
  Optional,
  Span,
  toText,
  typeOf,
  type Value,
} from './values.ts';

type Call = (args: readonly Value[], fuel: Fuel) => Value;

export interface ExpressionFunction {
  /** How many arguments it takes; a method's receiver is the first. */
  readonly least: number;
  readonly most: number;
  readonly call: Call;
}

const many = 32;

function fixed(count: number, call: Call): ExpressionFunction {
  return { least: count, most: count, call };
}

function between(least: number, most: number, call: Call): ExpressionFunction {
  return { least, most, call };
}

function mismatch(name: string, value: Value | undefined): never {
  throw new ExpressionError(`${name} does not take ${value === undefined ? 'nothing' : `a ${typeOf(value)}`}`);
}

function text(name: string, value: Value | undefined, fuel: Fuel): string {
  if (typeof value !== 'string') return mismatch(name, value);
  fuel.spendText(value.length);
  return value;
}

function number(name: string, value: Value | undefined): number {
  return typeof value === 'number' ? value : mismatch(name, value);
}

function list(name: string, value: Value | undefined, fuel: Fuel): readonly Value[] {
  if (value === undefined || !isList(value)) return mismatch(name, value);
  fuel.spend(1 + value.length);
  return value;
}

function position(name: string, value: Value | undefined, most: number): number {
  const index = number(name, value);
  if (!Number.isInteger(index) || index < 0 || index > most)
    throw new ExpressionError(`${name}: ${index} is not a position from 0 to ${most}`);
  return index;
}

function size([value]: readonly Value[], fuel: Fuel): number {
  if (typeof value === 'string') return countCharacters(text('size', value, fuel));
  if (value !== undefined && isList(value)) return value.length;
  if (value !== undefined && isMap(value)) return keysOf(value, fuel).length;
  return mismatch('size', value);
}

/** Both halves of a surrogate pair are one character. */
function countCharacters(value: string): number {
  let count = value.length;
  let isAfterHigh = false;
  for (let i = 0; i < value.length; i++) {
    const half = value.charCodeAt(i) & 0xfc00;
    if (isAfterHigh && half === 0xdc00) count -= 1;
    isAfterHigh = half === 0xd800;
  }
  return count;
}

function toNumber([value]: readonly Value[], fuel: Fuel): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  if (value instanceof Date) return Math.floor(value.getTime() / 1_000);
  if (value instanceof Span) return value.ms / 1_000;
  if (typeof value !== 'string') return mismatch('double', value);
  fuel.spendText(value.length);
  const parsed = /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? Number(value) : Number.NaN;
  return finite(parsed, brief(value));
}

function toBool(value: Value | undefined): boolean {
  if (typeof value === 'boolean') return value;
  if (value === 'true' || value === 'false') return value === 'true';
  return mismatch('bool', value);
}

function timestamp([value]: readonly Value[], fuel: Fuel): Date {
  if (value instanceof Date) return value;
  if (typeof value === 'number') return moment(value * 1_000);
  if (typeof value !== 'string') return mismatch('timestamp', value);
  fuel.spendText(value.length);
  const read = readInstant(value);
  if (!read.ok) throw new ExpressionError(`timestamp(${brief(value)}): ${read.message}`);
  return moment(read.value);
}

function duration([value]: readonly Value[], fuel: Fuel): Span {
  if (value instanceof Span) return value;
  if (typeof value === 'number') return new Span(value * 1_000);
  if (typeof value !== 'string') return mismatch('duration', value);
  fuel.spendText(value.length);
  const parsed = parseDuration(value, { signed: true });
  if (!parsed.ok) throw new ExpressionError(`duration(${brief(value)}): ${parsed.message}`);
  return new Span(parsed.ms);
}

/** The numbers of `min(a, b, …)` or `min(list)`. */
function extreme(name: string, pick: (order: number) => boolean): ExpressionFunction {
  return between(1, many, (args, fuel) => {
    const [first] = args;
    const values = args.length === 1 && first !== undefined && isList(first) ? list(name, first, fuel) : args;
    const [start, ...rest] = values;
    if (start === undefined) throw new ExpressionError(`${name} needs at least one value`);
    return rest.reduce((best, value) => (pick(compare(value, best, fuel)) ? value : best), start);
  });
}

function rounding(name: string, round: (value: number) => number): ExpressionFunction {
  return fixed(1, ([value]) => finite(round(number(name, value)), name));
}

export const functions: ReadonlyMap<string, ExpressionFunction> = new Map<string, ExpressionFunction>([
  ['size', fixed(1, size)],
  ['string', fixed(1, ([value = null], fuel) => toText(value, fuel))],
  ['int', fixed(1, (args, fuel) => finite(Math.trunc(toNumber(args, fuel)), 'int'))],
  ['double', fixed(1, toNumber)],
  ['bool', fixed(1, ([value]) => toBool(value))],
  ['dyn', fixed(1, ([value = null]) => value)],
  ['type', fixed(1, ([value = null]) => typeOf(value))],
  ['timestamp', fixed(1, timestamp)],
  ['duration', fixed(1, duration)],
  ['abs', rounding('abs', Math.abs)],
  ['ceil', rounding('ceil', Math.ceil)],
  ['floor', rounding('floor', Math.floor)],
  ['round', rounding('round', Math.round)],
  ['min', extreme('min', (order) => order < 0)],
  ['max', extreme('max', (order) => order > 0)],
]);

function matches([receiver, pattern]: readonly Value[], fuel: Fuel): boolean {
  return matchPattern(text('matches', receiver, fuel), text('matches', pattern, fuel), fuel);
}

function join([receiver, separator = '']: readonly Value[], fuel: Fuel): string {
  const parts = list('join', receiver, fuel).map((value) => text('join', value, fuel));
  const between = text('join', separator, fuel);
  fuel.spendText(between.length * parts.length);
  return parts.join(between);
}

function split([receiver, separator, limit]: readonly Value[], fuel: Fuel): Value {
  const value = text('split', receiver, fuel);
  fuel.spend(value.length / 16);
  return value.split(text('split', separator, fuel), limit === undefined ? undefined : number('split', limit));
}

function replace([receiver, from, to]: readonly Value[], fuel: Fuel): string {
  const value = text('replace', receiver, fuel);
  const parts = value.split(text('replace', from, fuel));
  const put = text('replace', to, fuel);
  fuel.spend(parts.length / 16);
  fuel.spendText(put.length * parts.length);
  return parts.join(put);
}

function substring([receiver, from, to]: readonly Value[], fuel: Fuel): string {
  const value = text('substring', receiver, fuel);
  const end = to === undefined ? value.length : position('substring', to, value.length);
  return value.slice(position('substring', from, end), end);
}

function slice([receiver, from, to]: readonly Value[], fuel: Fuel): Value {
  const values = list('slice', receiver, fuel);
  const end = position('slice', to, values.length);
  return values.slice(position('slice', from, end), end);
}

function distinct([receiver]: readonly Value[], fuel: Fuel): Value {
  const found: Value[] = [];
  for (const value of list('distinct', receiver, fuel))
    if (!found.some((known) => equals(known, value, fuel))) found.push(value);
  return found;
}

function sort([receiver]: readonly Value[], fuel: Fuel): Value {
  return list('sort', receiver, fuel).toSorted((a, b) => {
    fuel.spend(1);
    return compare(a, b, fuel);
  });
}

function sum([receiver]: readonly Value[], fuel: Fuel): number {
  return finite(
    list('sum', receiver, fuel).reduce<number>((total, value) => total + number('sum', value), 0),
    'the sum',
  );
}

function optional(name: string, value: Value | undefined): Optional {
  return value instanceof Optional ? value : mismatch(name, value);
}

/** To find a zone that was not asked for before. */
const zoneUnits = 40;

function datePart(name: string, part: (at: ReturnType<typeof dateParts>) => number): [string, ExpressionFunction] {
  return [
    name,
    between(1, 2, ([receiver, zone], fuel) => {
      if (!(receiver instanceof Date)) return mismatch(name, receiver);
      if (zone !== undefined && typeof zone !== 'string') return mismatch(name, zone);
      if (zone !== undefined) fuel.spend(zoneUnits + zone.length);
      return part(dateParts(receiver, zone ?? null));
    }),
  ];
}

function textMethod(name: string, call: (value: string, other: string) => Value): [string, ExpressionFunction] {
  return [name, fixed(2, ([value, other], fuel) => call(text(name, value, fuel), text(name, other, fuel)))];
}

function textForm(name: string, call: (value: string) => string): [string, ExpressionFunction] {
  return [name, fixed(1, ([value], fuel) => call(text(name, value, fuel)))];
}

export const methods: ReadonlyMap<string, ExpressionFunction> = new Map<string, ExpressionFunction>([
  ['size', fixed(1, size)],
  textMethod('startsWith', (value, other) => value.startsWith(other)),
  textMethod('endsWith', (value, other) => value.endsWith(other)),
  textMethod('contains', (value, other) => value.includes(other)),
  textMethod('indexOf', (value, other) => value.indexOf(other)),
  textMethod('lastIndexOf', (value, other) => value.lastIndexOf(other)),
  textForm('lowerAscii', (value) => value.toLowerCase()),
  textForm('upperAscii', (value) => value.toUpperCase()),
  textForm('trim', (value) => value.trim()),
  ['matches', fixed(2, matches)],
  ['split', between(2, 3, split)],
  ['replace', fixed(3, replace)],
  ['substring', between(2, 3, substring)],
  ['join', between(1, 2, join)],
  ['slice', fixed(3, slice)],
  ['sort', fixed(1, sort)],
  ['reverse', fixed(1, ([receiver], fuel) => list('reverse', receiver, fuel).toReversed())],
  ['distinct', fixed(1, distinct)],
  ['sum', fixed(1, sum)],
  [
    'keys',
    fixed(1, ([receiver = null], fuel) => (isMap(receiver) ? keysOf(receiver, fuel) : mismatch('keys', receiver))),
  ],
  ['hasValue', fixed(1, ([receiver]) => optional('hasValue', receiver).value !== undefined)],
  ['orValue', fixed(2, ([receiver, other = null]) => optional('orValue', receiver).value ?? other)],
  datePart('getFullYear', ({ year }) => year),
  datePart('getMonth', ({ month }) => month),
  datePart('getDate', ({ day }) => day),
  datePart('getDayOfMonth', ({ day }) => day - 1),
  datePart('getDayOfWeek', ({ weekday }) => weekday),
  datePart('getHours', ({ hour }) => hour),
  datePart('getMinutes', ({ minute }) => minute),
  datePart('getSeconds', ({ second }) => second),
]);
