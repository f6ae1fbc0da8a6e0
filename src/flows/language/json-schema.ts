/** The JSON Schema (draft 2020-12) of flow documents, generated from the validator, for editors and other tools. */
import { z } from 'zod';
import { flowShape, handlerShape, stepsMark, verbSchemas } from './shapes.ts';
import { verbs } from './step.ts';

type Schema = z.core.JSONSchema.BaseSchema;

const steps = { $ref: '#/$defs/steps' };

export function flowJsonSchema(): Record<string, unknown> {
  const defs = Object.fromEntries(verbs.map((verb) => [verb, toSchema(verbSchemas[verb])]));
  return {
    $id: 'urn:millrace:schema:flow',
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...withoutMeta(toSchema(flowShape)),
    $defs: {
      ...Object.fromEntries(Object.entries(defs).map(([verb, schema]) => [verb, withoutMeta(schema)])),
      handler: withoutMeta(toSchema(handlerShape)),
      steps: {
        type: 'array',
        items: { oneOf: [...verbs.map((verb) => ({ $ref: `#/$defs/${verb}` })), { enum: ['break', 'continue'] }] },
      },
    },
  };
}

function toSchema(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: 'input',
    override: ({ jsonSchema }) => referToSteps(jsonSchema),
  });
}

function withoutMeta(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== '$schema'));
}

/** Replaces what is inside a marked field by references. */
function referToSteps(schema: Schema): void {
  const mark = schema[stepsMark];
  if (mark === undefined) return;
  delete schema[stepsMark];
  if (mark === 'cases') schema.additionalProperties = steps;
  else if (mark === 'handlers') {
    delete schema.items;
    schema.anyOf = [steps, { type: 'array', items: { $ref: '#/$defs/handler' } }];
  } else {
    delete schema.type;
    delete schema.items;
    schema.$ref = steps.$ref;
  }
}
