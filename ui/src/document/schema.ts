/**
 * The fields and words that a document may contain, with their descriptions, from the server's JSON Schema. The position of
 * a line in the document is derived from the indentation of the lines above it.
 */
export interface Schema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  /** A definition of the whole schema: `#/$defs/steps`. */
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
}

/** Field names from the outside in; `-` stands for a list item. */
export type Way = readonly string[];

const linePattern = /^(?<space>\s*)(?<dashes>(?:-\s+)*)(?:(?<key>[\w-]+)\s*:)?/;

interface Read {
  /** Indentation of its key. */
  readonly column: number;
  readonly dashColumns: readonly number[];
  readonly key: string | undefined;
}

function readLine(line: string): Read {
  const { space = '', dashes = '', key } = linePattern.exec(line)?.groups ?? {};
  const dashColumns = [...dashes.matchAll(/-/g)].map(({ index }) => space.length + index);
  return { column: space.length + dashes.length, dashColumns, key };
}

/** The fields around a line and column, without the field of the line itself. */
export function wayTo(lines: readonly string[], at: number, column?: number): Way {
  const here = readLine(lines[at] ?? '');
  const way: string[] = here.dashColumns.map(() => '-');
  let limit = here.dashColumns[0] ?? column ?? here.column;
  // a list may have the same indentation as its field
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

/** Every schema that applies at a place; several if the schema offers a choice. */
export function schemasAt(root: Schema, way: Way): readonly Schema[] {
  const into = (schema: Schema, step: string): readonly Schema[] => {
    if (step === '-') return schema.items === undefined ? [] : open(schema.items, root);
    const own = schema.properties?.[step];
    if (own !== undefined) return open(own, root);
    return typeof schema.additionalProperties === 'object' ? open(schema.additionalProperties, root) : [];
  };
  return way.reduce<readonly Schema[]>(
    (schemas, step) => [...new Set(schemas.flatMap((schema) => into(schema, step)))],
    open(root, root),
  );
}

/** A schema with its alternatives. */
function open(schema: Schema, root: Schema): readonly Schema[] {
  const name = /^#\/\$defs\/(.+)$/.exec(schema.$ref ?? '')?.[1];
  const target = name === undefined ? schema : (root.$defs?.[name] ?? schema);
  const choices = [...(target.anyOf ?? []), ...(target.oneOf ?? [])];
  return [target, ...choices.flatMap((choice) => open(choice, root))];
}

/** The possible words of a value: those of an enum, or true and false. */
export function wordsOf(schemas: readonly Schema[]): readonly string[] {
  return schemas.flatMap((schema) => {
    if (schema.enum !== undefined) return schema.enum.filter((word) => typeof word === 'string');
    return [schema.type].flat().includes('boolean') ? ['true', 'false'] : [];
  });
}
