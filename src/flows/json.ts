/** JSON values: what fields, variables, inputs and results of flows are. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

/** The member of an object, undefined if it has none of its own. */
export function memberOf(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The number of characters of a value as JSON, about. Stops counting beyond `most`. */
export function sizeOf(value: Json, most: number): number {
  let size = 0;
  const stack: Json[] = [value];
  for (let top = stack.pop(); top !== undefined && size <= most; top = stack.pop()) {
    if (typeof top === 'string') size += top.length + 2;
    else if (isList(top)) {
      size += top.length + 2;
      for (const item of top) stack.push(item);
    } else if (isObject(top)) {
      for (const key of Object.keys(top)) {
        size += key.length + 4;
        stack.push(top[key] ?? null);
      }
    } else size += 4;
  }
  return size;
}
