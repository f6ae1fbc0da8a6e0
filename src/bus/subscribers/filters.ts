/**
 * Filters of subscribers: JSON conditions on an event's topic, type, URL, time and data.
 *
 *     { "type": ["create", "update"], "data.amount": { "$gte": 100 }, "$or": [{ "data.eu": true }, { "url": { "$startsWith": "https://x/" } }] }
 *
 * 1. All conditions of an object must hold. A value means `$eq`, and an array means `$in`.
 * 2. A filter is bounded in size and depth, and has no regular expressions: the time to match is linear in the filter.
 * 3. `parseFilter` reports every fault with its path. `matches` never throws.
 */
import { type Fault, MillraceError } from '../../errors.ts';

/** The element of a delivery's array. */
export interface BusElement {
  readonly topic: string;
  readonly type: string;
  readonly url: string;
  readonly t: number;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly id: string;
}

type Scalar = string | number | boolean | null;

/** A parsed filter: all rules must hold. */
export interface Filter {
  readonly rules: readonly Rule[];
}

type Rule =
  | { readonly kind: 'field'; readonly path: readonly string[]; readonly tests: readonly Test[] }
  | { readonly kind: 'or'; readonly filters: readonly Filter[] }
  | { readonly kind: 'not'; readonly filter: Filter };

type Test =
  | { readonly kind: 'in'; readonly values: ReadonlySet<unknown> }
  | { readonly kind: 'order'; readonly holds: (difference: number) => boolean; readonly bound: string | number }
  | { readonly kind: 'startsWith'; readonly prefix: string }
  | { readonly kind: 'exists'; readonly expected: boolean }
  | { readonly kind: 'not'; readonly tests: readonly Test[] };

export const filterLimits = {
  /** Length of the filter as JSON. */
  maxChars: 8_192,
  /** Nesting of `$or` and `$not`. */
  maxDepth: 8,
  /** Parts of a path such as `data.a.b`. */
  maxPathParts: 10,
} as const;

interface PathFault {
  readonly path: readonly string[];
  readonly message: string;
}

const plainFields: ReadonlySet<string> = new Set(['topic', 'type', 'url', 't', 'id']);
const orderings: Readonly<Record<string, (difference: number) => boolean>> = {
  $gt: (difference) => difference > 0,
  $gte: (difference) => difference >= 0,
  $lt: (difference) => difference < 0,
  $lte: (difference) => difference <= 0,
};
const operatorNames = '$eq, $in, $gt, $gte, $lt, $lte, $startsWith, $exists, $not';

/** Every fault of a filter; none if it may be used. */
export function filterFaults(value: unknown): PathFault[] {
  const faults: PathFault[] = [];
  compile(value, faults);
  return faults;
}

/** Throws `bad_request` with every fault and its path. */
export function parseFilter(value: unknown): Filter {
  const faults: PathFault[] = [];
  const filter = compile(value, faults);
  if (faults.length === 0) return filter;
  const named: Fault[] = faults.map(({ path, message }) => ({ path: ['filter', ...path].join('.'), message }));
  throw new MillraceError('bad_request', named.map((f) => `${f.path}: ${f.message}`).join('; '), { faults: named });
}

function compile(value: unknown, faults: PathFault[]): Filter {
  if (JSON.stringify(value ?? null).length > filterLimits.maxChars) {
    faults.push({ path: [], message: `is longer than ${filterLimits.maxChars} characters` });
    return { rules: [] };
  }
  return compileFilter(value, { path: [], depth: 0, faults });
}

/** The place of a value within the filter. */
interface Place {
  readonly path: readonly string[];
  readonly depth: number;
  readonly faults: PathFault[];
}

const below = (place: Place, ...keys: string[]): Place => ({ ...place, path: [...place.path, ...keys] });
const report = ({ path, faults }: Place, message: string): void => void faults.push({ path, message });

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isScalar(value: unknown): value is Scalar {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

function compileFilter(value: unknown, place: Place): Filter {
  if (!isObject(value)) {
    report(place, 'is not an object of conditions');
    return { rules: [] };
  }
  if (place.depth > filterLimits.maxDepth) {
    report(place, `is nested more than ${filterLimits.maxDepth} deep`);
    return { rules: [] };
  }
  const rules = Object.entries(value).map(([key, condition]) => compileRule(key, condition, below(place, key)));
  return { rules: rules.filter((rule) => rule !== undefined) };
}

function compileRule(key: string, condition: unknown, place: Place): Rule | undefined {
  const inner = { ...place, depth: place.depth + 1 };
  if (key === '$not') return { kind: 'not', filter: compileFilter(condition, inner) };
  if (key === '$or') {
    if (!Array.isArray(condition) || condition.length === 0) {
      report(place, 'is not a list of filters');
      return undefined;
    }
    return { kind: 'or', filters: condition.map((part, i) => compileFilter(part, below(inner, String(i)))) };
  }
  const path = key.split('.');
  if (!isFieldPath(path)) {
    report(place, 'is not a field: use topic, type, url, t, id, data.NAME, $or or $not');
    return undefined;
  }
  return { kind: 'field', path, tests: compileTests(condition, place) };
}

function isFieldPath([first = '', ...rest]: readonly string[]): boolean {
  if (first === 'data') return rest.length < filterLimits.maxPathParts && rest.every((part) => part !== '');
  return plainFields.has(first) && rest.length === 0;
}

function compileTests(condition: unknown, place: Place): Test[] {
  if (isScalar(condition)) return [equals([condition])];
  if (Array.isArray(condition)) return compileList(condition, place);
  if (!isObject(condition) || Object.keys(condition).length === 0) {
    report(place, `has no operator: use ${operatorNames}`);
    return [];
  }
  return Object.entries(condition).flatMap(([name, operand]) => compileTest(name, operand, below(place, name)));
}

const equals = (values: readonly unknown[]): Test => ({ kind: 'in', values: new Set(values) });

function compileList(values: readonly unknown[], place: Place): Test[] {
  if (values.every(isScalar)) return [equals(values)];
  report(place, 'is not a list of texts, numbers, true, false or null');
  return [];
}

/** Operators may be written without their `$`. */
function compileTest(name: string, operand: unknown, place: Place): Test[] {
  const operator = name.startsWith('$') ? name : `$${name}`;
  const ordering = Object.hasOwn(orderings, operator) ? orderings[operator] : undefined;
  if (ordering !== undefined) return compileOrdering(ordering, operand, place);
  switch (operator) {
    case '$eq':
      return compileList([operand], place);
    case '$in':
      return compileList(Array.isArray(operand) ? operand : [undefined], place);
    case '$startsWith':
      return checked(typeof operand === 'string', { kind: 'startsWith', prefix: String(operand) }, place, 'a text');
    case '$exists':
      return checked(typeof operand === 'boolean', { kind: 'exists', expected: operand === true }, place, 'a boolean');
    case '$not':
      return compileNegation(operand, place);
    default:
      report(place, `is not an operator: use ${operatorNames}`);
      return [];
  }
}

function compileOrdering(holds: (difference: number) => boolean, operand: unknown, place: Place): Test[] {
  if (typeof operand === 'number' || typeof operand === 'string') return [{ kind: 'order', holds, bound: operand }];
  report(place, 'is not a number or a text');
  return [];
}

function compileNegation(operand: unknown, place: Place): Test[] {
  const inner = { ...place, depth: place.depth + 1 };
  if (inner.depth <= filterLimits.maxDepth) return [{ kind: 'not', tests: compileTests(operand, inner) }];
  report(place, `is nested more than ${filterLimits.maxDepth} deep`);
  return [];
}

function checked(isGood: boolean, test: Test, place: Place, wanted: string): Test[] {
  if (isGood) return [test];
  report(place, `is not ${wanted}`);
  return [];
}

/** Whether the event passes the filter; null: everything does. */
export function matches(filter: Filter | null, element: BusElement): boolean {
  return filter === null || filter.rules.every((rule) => holds(rule, element));
}

function holds(rule: Rule, element: BusElement): boolean {
  switch (rule.kind) {
    case 'or':
      return rule.filters.some((filter) => matches(filter, element));
    case 'not':
      return !matches(rule.filter, element);
    case 'field':
    default: {
      const value = valueAt(element, rule.path);
      return rule.tests.every((test) => passes(test, value));
    }
  }
}

/** Undefined: there is no such field. A number of an array is an index. */
function valueAt(element: BusElement, path: readonly string[]): unknown {
  let value: unknown = element;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

function passes(test: Test, value: unknown): boolean {
  switch (test.kind) {
    case 'in':
      return test.values.has(value);
    case 'order':
      return typeof value === typeof test.bound && test.holds(compare(value as string | number, test.bound));
    case 'startsWith':
      return typeof value === 'string' && value.startsWith(test.prefix);
    case 'exists':
      return (value !== undefined) === test.expected;
    case 'not':
    default:
      return !test.tests.every((inner) => passes(inner, value));
  }
}

function compare(a: string | number, b: string | number): number {
  if (a === b) return 0;
  return a > b ? 1 : -1;
}
