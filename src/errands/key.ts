/** The key of an errand names its work and its arguments, as JSON: `["deliver",["<subscriber>",0]]`. */

export interface ErrandWork {
  readonly name: string;
  readonly args: readonly unknown[];
}

export function errandKey(name: string, ...args: readonly (string | number)[]): string {
  return JSON.stringify([name, args]);
}

/** Undefined: no key of ours. */
export function parseErrandKey(key: string): ErrandWork | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(key);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  const parts: readonly unknown[] = parsed;
  const [name, args] = parts;
  return typeof name === 'string' && Array.isArray(args) ? { name, args } : undefined;
}
