import { expect, it } from 'vitest';
import { z } from 'zod';
import { endpoints } from './endpoint.ts';
import { makeOpenApi } from './openapi.ts';

it('a raw body and headers that an endpoint documents are described, with the names and hints of their fields', () => {
  const table = endpoints({
    'POST /things': {
      summary: 'Store a thing',
      tag: 'things',
      allow: ['operator'],
      body: 'bytes',
      documented: {
        body: z.object({ url: z.string().describe('where it is') }),
        headers: z.object({ 'Idempotency-Key': z.string().max(255).optional() }),
      },
      answer: 'none',
      status: 204,
    },
    'PUT /raw': { summary: 'Store bytes', tag: 'things', allow: ['operator'], body: 'bytes', answer: 'none' },
  });
  const { paths } = makeOpenApi([table], '1.0.0') as { paths: Record<string, Record<string, object>> };
  expect(paths['/things']?.['post']).toMatchObject({
    parameters: [{ name: 'Idempotency-Key', in: 'header', required: false, schema: { maxLength: 255 } }],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { properties: { url: { description: 'where it is' } } } } },
    },
  });
  expect(paths['/raw']?.['put']).toMatchObject({ requestBody: { content: { 'application/octet-stream': {} } } });
});
