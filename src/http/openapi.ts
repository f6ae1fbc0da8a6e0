/** Generates OpenAPI 3.1 from the tables of endpoints, so the description matches what is served. */
import { z } from 'zod';
import type { Endpoint, EndpointTable } from './endpoint.ts';

type Json = Record<string, unknown>;

const problem = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'detail'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string' },
    detail: { type: 'string' },
    faults: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: { path: { type: 'string' }, message: { type: 'string' } },
      },
    },
  },
};

export function makeOpenApi(tables: readonly EndpointTable[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const [key, endpoint] of tables.flatMap((table) => Object.entries(table))) {
    const [method = '', path = ''] = key.split(' ');
    paths[path] = { ...paths[path], [method.toLowerCase()]: makeOperation(key, endpoint) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version,
      description:
        'Job scheduler, workflow engine and event bus. Tenant `default` needs no prefix; the paths of any other tenant are under `/t/{tenant}`. Errors are application/problem+json.',
    },
    paths,
    components: {
      schemas: { Problem: problem },
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'a key, or the credential of a running task' },
        basic: { type: 'http', scheme: 'basic', description: 'the key as the user name' },
      },
    },
  };
}

function makeOperation(key: string, endpoint: Endpoint): Json {
  const body = requestBody(endpoint);
  return {
    operationId: key
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .replace(/_$/, ''),
    summary: endpoint.summary,
    tags: [endpoint.tag],
    'x-millrace-allow': endpoint.allow,
    security: endpoint.allow.includes('anyone') ? [] : [{ key: [] }, { basic: [] }],
    parameters: [
      ...parameters('path', endpoint.params),
      ...parameters('query', endpoint.query),
      ...parameters('header', endpoint.documented?.headers),
    ],
    ...(body ? { requestBody: body } : {}),
    responses: responses(endpoint),
  };
}

function makeSchema(type: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(type, { io, unrepresentable: 'any' });
  return schema;
}

function parameters(where: 'path' | 'query' | 'header', type: z.ZodObject | undefined): Json[] {
  return Object.entries(type?.shape ?? {}).map(([name, field]) => ({
    name,
    in: where,
    required: where === 'path' || !(field as z.ZodType).safeParse(undefined).success,
    schema: makeSchema(field as z.ZodType, 'input'),
  }));
}

function requestBody({ body, documented }: Endpoint): Json | undefined {
  if (body === undefined) return undefined;
  if (documented?.body !== undefined)
    return { required: true, content: { 'application/json': { schema: makeSchema(documented.body, 'input') } } };
  if (body === 'bytes') return { content: { 'application/octet-stream': {} } };
  const document = { type: 'object', description: 'see GET /api/jobs/schema' };
  if (body === 'document')
    return { required: true, content: { 'application/json': { schema: document }, 'application/yaml': {} } };
  return {
    required: !body.safeParse(undefined).success,
    content: { 'application/json': { schema: makeSchema(body, 'input') } },
  };
}

const rawTypes = { text: 'text/plain', bytes: 'application/octet-stream', events: 'text/event-stream' } as const;

function responses(endpoint: Endpoint): Json {
  const { answer } = endpoint;
  const good: Json = { description: endpoint.summary };
  if (answer !== 'none') {
    good['content'] =
      typeof answer === 'string'
        ? { [rawTypes[answer]]: {} }
        : { 'application/json': { schema: makeSchema(answer, 'output') } };
  }
  const others = Object.entries(endpoint.others ?? {}).map(([status, description]) => [
    status,
    Number(status) < 300 ? { ...good, description } : makeProblemResponse(description),
  ]);
  const fallback = makeProblemResponse(
    'An error, with a code and a message. For a document, all faults are listed with their paths.',
  );
  return { [endpoint.status ?? 200]: good, ...Object.fromEntries(others), default: fallback };
}

function makeProblemResponse(description: string): Json {
  return { description, content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } };
}
