/**
 * Finds values in parsed JSON that cannot be kept as they are: NUL and half of a surrogate pair, which PostgreSQL cannot store,
 * numbers that are not exact, and objects that are nested too deep.
 */
import { numberFault } from '../kernel/text/exact-number.ts';
import { maxJsonDepth } from './json-size.ts';

export interface Unstorable {
  /** The keys from here inwards. They are collected when the search returns, so a body without faults costs no paths. */
  readonly path: string[];
  readonly message: string;
}

/** The first value that PostgreSQL cannot store or that JavaScript cannot represent; undefined: there is none. */
export function findUnstorable(value: unknown, depth = 0): Unstorable | undefined {
  if (typeof value === 'string') return findTextFault(value);
  if (typeof value === 'number') return findNumberFault(value);
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth >= maxJsonDepth) return { path: [], message: `nested more than ${maxJsonDepth} deep` };
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = findUnstorable(value[i], depth + 1);
      if (found) return prependKey(found, String(i));
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (key === '__proto__') return { path: [key], message: 'is not a name that may be used' };
    const found = findTextFault(key);
    if (found) return found;
    const inside = findUnstorable(Reflect.get(value, key), depth + 1);
    if (inside) return prependKey(inside, key);
  }
  return undefined;
}

function prependKey(found: Unstorable, key: string): Unstorable {
  found.path.unshift(key);
  return found;
}

function findTextFault(text: string): Unstorable | undefined {
  if (text.includes('\0')) return { path: [], message: 'holds a NUL character' };
  if (!text.isWellFormed()) return { path: [], message: 'holds half of a surrogate pair' };
  return undefined;
}

function findNumberFault(value: number): Unstorable | undefined {
  const message = numberFault(value);
  return message === undefined ? undefined : { path: [], message };
}
