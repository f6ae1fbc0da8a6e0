/** Access to documents of unknown shape, and paths as faults show them: `tasks[2].depends[0]`, `env["A B"]`. */

export type PathPart = string | number;

const simple = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const longestKey = 60;

export function formatPath(parts: readonly PathPart[]): string {
  return parts.reduce<string>((path, part) => {
    if (typeof part === 'number') return `${path}[${part}]`;
    const key = part.length > longestKey ? `${part.slice(0, longestKey)}…` : part;
    if (!simple.test(key)) return `${path}[${JSON.stringify(key)}]`;
    return path === '' ? key : `${path}.${key}`;
  }, '');
}

/** The value at the path, or undefined. */
export function valueAt(document: unknown, parts: readonly PathPart[]): unknown {
  return parts.reduce<unknown>((value, part) => {
    if (Array.isArray(value)) return typeof part === 'number' ? (value[part] as unknown) : undefined;
    return isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }, document);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The entries of a list that are mappings, each with its index. */
export type Records = readonly (readonly [number, Readonly<Record<string, unknown>>])[];

export function recordsOf(list: unknown): Records {
  if (!Array.isArray(list)) return [];
  const items: readonly unknown[] = list;
  return items.flatMap((item, i) => (isRecord(item) ? [[i, item] as const] : []));
}
