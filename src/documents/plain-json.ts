/**
 * Checks a document before its fields are read: it must be plain JSON of a bounded size, with texts that PostgreSQL can store.
 *
 * The walk does not recurse, and visits a value once for each alias of it. So the limits below also stop deep nesting and
 * alias bombs.
 */
import type { Fault } from '../errors.ts';
import { numberFault } from '../kernel/text/exact-number.ts';
import { maxFaults } from './faults.ts';
import { formatPath, type PathPart } from '../kernel/text/path.ts';

const maxDepth = 64;
const maxCharacters = 16_000_000;

interface Place {
  readonly value: unknown;
  readonly key: PathPart | undefined;
  readonly parent: Place | undefined;
  readonly depth: number;
}

export interface PlainLimits {
  /** Maximum number of scalars, lists and mappings together. */
  readonly values: number;
  /** Whether numbers must be exact, and texts and sizes within their limits. */
  readonly strict: boolean;
}

export interface Plainness {
  readonly faults: readonly Fault[];
  /** Whether the walk reached the end. If not, the document must not be processed any further. */
  readonly bounded: boolean;
}

export function checkPlain(document: unknown, { values: mostValues, strict }: PlainLimits): Plainness {
  const faults: Fault[] = [];
  const stack: Place[] = [{ value: document, key: undefined, parent: undefined, depth: 0 }];
  let [values, characters] = [0, 0];
  for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
    const { value } = place;
    if (place.depth > maxDepth) return tooMuch(faults, place, `is nested deeper than ${maxDepth} levels`);
    characters +=
      (typeof value === 'string' ? value.length : 0) + (typeof place.key === 'string' ? place.key.length : 0);
    if (faults.length > maxFaults) return { faults, bounded: false };
    if (++values > mostValues || characters > maxCharacters) {
      return tooMuch(faults, undefined, `is too large: more than ${mostValues} values or ${maxCharacters} characters`);
    }
    const message = keyFault(place.key) ?? valueFault(value, strict);
    if (message !== undefined) faults.push({ path: pathOf(place), message });
    else pushChildren(stack, place);
  }
  return { faults, bounded: true };
}

/** Pushes children in reverse, so that they are popped, and faults listed, in document order. */
function pushChildren(stack: Place[], parent: Place): void {
  const { value } = parent;
  const depth = parent.depth + 1;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    for (let i = items.length - 1; i >= 0; i--) stack.push({ value: items[i], key: i, parent, depth });
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value).toReversed()) stack.push({ value: child, key, parent, depth });
  }
}

function keyFault(key: PathPart | undefined): string | undefined {
  if (key === '__proto__') return 'is not a name that may be used';
  return typeof key === 'string' && !isStorable(key)
    ? 'has a name with NUL or half of a surrogate pair in it'
    : undefined;
}

function valueFault(value: unknown, strict: boolean): string | undefined {
  if (typeof value === 'string')
    return isStorable(value) ? undefined : 'must not contain NUL or half of a surrogate pair';
  if (typeof value === 'number') return strict || !Number.isFinite(value) ? numberFault(value) : undefined;
  if (value === null || value === undefined || typeof value === 'boolean') return undefined;
  if (Array.isArray(value)) return undefined;
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined;
  return prototype === Object.prototype || prototype === null ? undefined : 'is not a JSON value';
}

/** NUL and lone surrogates cannot be stored as text. */
function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Cs}/u.test(text);
}

function tooMuch(faults: readonly Fault[], place: Place | undefined, message: string): Plainness {
  return { faults: [...faults, { path: pathOf(place), message }], bounded: false };
}

function pathOf(place: Place | undefined): string {
  const parts: PathPart[] = [];
  for (let at = place; at?.key !== undefined; at = at.parent) parts.push(at.key);
  return formatPath(parts.toReversed());
}
