/**
 * The JSON Schema (draft 2020-12) of job documents, generated from the validator, for editors and for other tools.
 *
 * It says what a schema can say: fields, types, and the choices between them. Names that must be unique, references that
 * must lead somewhere and dates that must exist are left to the validator.
 */
import { z } from 'zod';
import { jobSchema } from './document.ts';

export function jobJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(jobSchema, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ jsonSchema }) => flattenNull(jsonSchema),
  });
  return { $id: 'urn:millrace:schema:job', ...schema };
}

/** "This or null" of a plain type becomes a list of types, which editors show better. */
function flattenNull(schema: z.core.JSONSchema.BaseSchema): void {
  const [first, second, ...more] = schema.anyOf ?? [];
  if (typeof first !== 'object' || typeof second !== 'object' || more.length > 0 || second.type !== 'null') return;
  if (typeof first.type !== 'string' || first.$ref !== undefined) return;
  delete schema.anyOf;
  Object.assign(schema, { ...first, ...schema, type: [first.type, 'null'] });
  if (schema.enum !== undefined) schema.enum = [...schema.enum, null];
}
