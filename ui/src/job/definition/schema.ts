/**
 * What a document may hold, from the server's own JSON Schema: which fields, which words, and what each means. It knows
 * where in a document a line stands by the indentation of what is above it.
 */
export interface Schema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
}

/** Field names from the outside in; `-` for an item of a list. */
export type Way = readonly string[];

const linePattern = /^(?<space>\s*)(?<dashes>(?:-\s+)*)(?:(?<key>[\w-]+)\s*:)?/;

interface Read {
  /** How far in its key stands. */
  readonly column: number;
  readonly dashColumns: readonly number[];
  readonly key: string | undefined;
}

function readLine(line: string): Read {
  const { space = '', dashes = '', key } = linePattern.exec(line)?.groups ?? {};
  const dashColumns = [...dashes.matchAll(/-/g)].map(({ index }) => space.length + index);
  return { column: space.length + dashes.length, dashColumns, key };
}

/** What the place at that line and column belongs to: the fields around it, not that of the line itself. */
export function wayTo(lines: readonly string[], at: number, column?: number): Way {
  const here = readLine(lines[at] ?? '');
  const way: string[] = here.dashColumns.map(() => '-');
  let limit = here.dashColumns[0] ?? column ?? here.column;
  // a list may stand as far in as the field that holds it
  let isItem = here.dashColumns.length > 0;
  for (let i = at - 1; i >= 0 && (limit > 0 || isItem); i--) {
    const line = lines[i] ?? '';
    if (/^\s*(#|$)/.test(line)) continue;
    const { column: keyColumn, dashColumns, key } = readLine(line);
    if (key !== undefined && (keyColumn < limit || (isItem && keyColumn === limit && dashColumns.length === 0))) {
      way.unshift(key);
      limit = keyColumn;
      isItem = false;
    }
    const inner = dashColumns.filter((dash) => dash < limit);
    if (inner.length > 0) {
      way.unshift(...inner.map(() => '-'));
      limit = inner[0] ?? 0;
      isItem = true;
    }
  }
  return way;
}

export function keyOf(line: string): string | undefined {
  return readLine(line).key;
}

/** Every shape that a place may have; several where the schema leaves a choice. */
export function schemasAt(root: Schema, way: Way): readonly Schema[] {
  return way.reduce<readonly Schema[]>((schemas, step) => schemas.flatMap((schema) => into(schema, step)), open(root));
}

function into(schema: Schema, step: string): readonly Schema[] {
  if (step === '-') return schema.items === undefined ? [] : open(schema.items);
  const own = schema.properties?.[step];
  if (own !== undefined) return open(own);
  return typeof schema.additionalProperties === 'object' ? open(schema.additionalProperties) : [];
}

function open(schema: Schema): readonly Schema[] {
  return [schema, ...(schema.anyOf ?? []).flatMap(open)];
}

/** The words that a value may be: of an enum, and both of a flag. */
export function wordsOf(schemas: readonly Schema[]): readonly string[] {
  return schemas.flatMap((schema) => {
    if (schema.enum !== undefined) return schema.enum.filter((word) => typeof word === 'string');
    return [schema.type].flat().includes('boolean') ? ['true', 'false'] : [];
  });
}
