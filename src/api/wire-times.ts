/** Rows as they leave: a row whose columns have the wire's names needs nothing but its times written out. */

export type Written<T> = T extends Date
  ? string
  : T extends readonly (infer I)[]
    ? Written<I>[]
    : T extends object
      ? { [K in keyof T]: Written<T[K]> }
      : T;

/** The row with its times as RFC 3339 text. Looks at the columns only, not into them. */
export function written<T extends object>(row: T): Written<T> {
  const entries = Object.entries(row).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ]);
  return Object.fromEntries(entries) as Written<T>;
}
