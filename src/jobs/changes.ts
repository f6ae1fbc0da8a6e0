/** The difference between two documents, path by path. It shows people what an application of the new one would change. */

export interface Change {
  readonly path: string;
  readonly change: 'added' | 'removed' | 'changed';
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Items of these lists are identified by name, not by position. */
const namedLists = new Set(['triggers', 'tasks']);

export function changesBetween(before: unknown, after: unknown, path = ''): Change[] {
  if (isRecord(before) && isRecord(after)) return recordChanges(before, after, path);
  if (Array.isArray(before) && Array.isArray(after) && namedLists.has(path)) {
    return recordChanges(byName(before), byName(after), path);
  }
  if (before === undefined) return after === undefined ? [] : [{ path, change: 'added', after }];
  if (after === undefined) return [{ path, change: 'removed', before }];
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, change: 'changed', before, after }];
}

type Fields = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function recordChanges(before: Fields, after: Fields, path: string): Change[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.flatMap((key) => changesBetween(own(before, key), own(after, key), path === '' ? key : `${path}.${key}`));
}

/** A task may be called `constructor`, which every object inherits. */
function own(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

function byName(items: readonly unknown[]): Fields {
  const named = items.map((item, i) => [
    isRecord(item) && typeof item['name'] === 'string' ? item['name'] : String(i),
    item,
  ]);
  return Object.fromEntries(named) as Fields;
}
