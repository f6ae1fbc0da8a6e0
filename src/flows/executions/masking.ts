/** Masks the values of sealed fields wherever people see the state or the history of an execution. */
import { isList, isObject, type Json, type JsonObject } from '../json.ts';
import type { Flow } from '../language/step.ts';

export const mask = '•••';

/**
 * Replaces the values of sealed fields in any value that may hold fields: a state, a delta, an input. A field is recognized by its path
 * after `f`, or by its whole path inside an object of fields, because frames, undo entries and inputs hold copies of fields.
 */
export function maskSealed<T>(flow: Pick<Flow, 'sealed'>, value: T): T {
  if (flow.sealed.length === 0) return value;
  const paths = flow.sealed.map((path) => path.replace(/^f\./, '').split('.'));
  return maskIn(value as Json, paths) as T;
}

function maskIn(value: Json, paths: readonly (readonly string[])[]): Json {
  if (isList(value)) return value.map((item) => maskIn(item, paths));
  if (!isObject(value)) return value;
  let masked: JsonObject = value;
  for (const path of paths) masked = maskPath(masked, path);
  return Object.fromEntries(Object.entries(masked).map(([key, item]) => [key, maskIn(item, paths)]));
}

/** The object with the value at a path replaced, if it has one. */
function maskPath(object: JsonObject, [first = '', ...rest]: readonly string[]): JsonObject {
  if (!Object.hasOwn(object, first)) return object;
  const inner = object[first] ?? null;
  if (rest.length === 0) return { ...object, [first]: mask };
  return isObject(inner) ? { ...object, [first]: maskPath(inner, rest) } : object;
}
