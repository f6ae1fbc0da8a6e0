import { expect, test } from 'vitest';
import { objects } from './document.ts';
import { jobJsonSchema } from './json-schema.ts';
import { isRecord, type PathPart, valueAt } from '../../kernel/text/path.ts';

const schema = jobJsonSchema();

/** Finds the schema of an object by its path in a document. */
function placeOf(path: string): PathPart[] {
  const parts = path === '' ? [] : path.split('.');
  return parts.flatMap((part) => ['properties', part, ...(part === 'triggers' || part === 'tasks' ? ['items'] : [])]);
}

test('the schema names draft 2020-12, and has a title and a description', () => {
  expect(schema).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:millrace:schema:job',
    title: 'Millrace job',
    type: 'object',
    required: ['project', 'name'],
    additionalProperties: false,
  });
});

test('every field of every object has a description, and nothing else is allowed', () => {
  for (const [path, { fields }] of objects) {
    const object = valueAt(schema, placeOf(path));
    const properties = isRecord(object) ? object['properties'] : undefined;
    expect(object).toMatchObject({ additionalProperties: false });
    expect(Object.keys(isRecord(properties) ? properties : {})).toEqual(fields);
    for (const field of fields) {
      const description = valueAt(properties, [field, 'description']);
      expect(description, `${path}.${field}`).toBeTypeOf('string');
    }
  }
});

test('optional fields may be null, choices are declared, and fields with a default are not required', () => {
  const task = valueAt(schema, placeOf('tasks'));
  const trigger = valueAt(schema, placeOf('triggers'));
  expect(task).toMatchObject({ required: ['name'], properties: { timeout: { type: ['string', 'null'] } } });
  expect(trigger).toMatchObject({
    required: ['name', 'start'],
    oneOf: [{ required: ['period'] }, { required: ['cron'] }],
    properties: { catchup: { enum: ['none', 'earliest', 'latest', 'random', 'last', null] } },
  });
  expect(valueAt(task, ['properties', 'function'])).toMatchObject({ required: ['name'] });
});
