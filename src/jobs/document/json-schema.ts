/**
 * The JSON Schema (draft 2020-12) of job documents, generated from the validator, for editors and for other tools.
 *
 * It covers fields, types, and choices between fields. Only the validator checks that names are unique, that references lead
 * somewhere, and that dates exist.
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

/** Replaces `anyOf` of a plain type and null by a list of types, which editors display better. */
function flattenNull(schema: z.core.JSONSchema.BaseSchema): void {
  const [first, second, ...more] = schema.anyOf ?? [];
  if (typeof first !== 'object' || typeof second !== 'object' || more.length > 0 || second.type !== 'null') return;
  if (typeof first.type !== 'string' || first.$ref !== undefined) return;
  delete schema.anyOf;
  Object.assign(schema, { ...first, ...schema, type: [first.type, 'null'] });
  if (schema.enum !== undefined) schema.enum = [...schema.enum, null];
}
