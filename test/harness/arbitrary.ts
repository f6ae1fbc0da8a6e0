/** Random values that a JSON Schema allows; one in twenty is arbitrary JSON instead. */
import * as fc from 'fast-check';

export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
}

export function arbitraryOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc.oneof(
    { arbitrary: allowedBy(schema), weight: 19 },
    { arbitrary: fc.jsonValue({ maxDepth: 2 }), weight: 1 },
  );
}

function allowedBy(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined && choices.length > 0) return fc.oneof(...choices.map((choice) => arbitraryOf(choice)));
  return byType[String(schema.type)]?.(schema) ?? fc.jsonValue({ maxDepth: 2 });
}

const byType: Readonly<Record<string, (schema: JsonSchema) => fc.Arbitrary<unknown>>> = {
  null: () => fc.constant(null),
  boolean: () => fc.boolean(),
  integer: (schema) =>
    fc.oneof(fc.integer(bounds(schema)), fc.integer(), fc.constantFrom(0, 2 ** 31, -(2 ** 31) - 1, 2 ** 53)),
  number: () => fc.double({ noNaN: true, noDefaultInfinity: true }),
  string: (schema) => text(schema.format),
  array: (schema) => fc.array(arbitraryOf(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 4 }),
  object: (schema) => object(schema),
};

function bounds({ minimum = -1000, maximum = 1000 }: JsonSchema): { min: number; max: number } {
  return { min: Math.max(minimum, -1_000_000), max: Math.min(maximum, 1_000_000) };
}

function text(format: string | undefined): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.uuid();
  if (format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  return fc.string({ unit: 'grapheme', maxLength: 30 });
}

function object(schema: JsonSchema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, field]) => [name, arbitraryOf(field)]),
  );
  const own = fc.record(fields, { requiredKeys: (schema.required ?? []).filter((name) => name in fields) });
  return schema.properties === undefined ? fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 })) : own;
}
