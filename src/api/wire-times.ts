/** Converts rows for the wire. The columns already have the names of the wire, so only times are converted. */

export type Written<T> = T extends Date
  ? string
  : T extends readonly (infer I)[]
    ? Written<I>[]
    : T extends object
      ? { [K in keyof T]: Written<T[K]> }
      : T;

/** Converts times to RFC 3339 text. Does not look inside of arrays and objects. */
export function toWire<T extends object>(row: T): Written<T> {
  const entries = Object.entries(row).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ]);
  return Object.fromEntries(entries) as Written<T>;
}
