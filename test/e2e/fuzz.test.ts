/**
 * No bad input gets an answer of 500 or more (I11): every endpoint of our OpenAPI is called with valid input, with near misses
 * and with garbage. Answers must match the description.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tenantEndpoints } from '../../src/api/endpoints.ts';
import { gatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { arbitraryOf, type JsonSchema } from '../harness/arbitrary.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const table: Readonly<Record<string, Endpoint>> = { ...gatewayEndpoints, ...tenantEndpoints };
const runsPerEndpoint = Number(process.env['MILLRACE_FUZZ_RUNS'] ?? 12);
/** Streams and long polls have no end of their own. */
const patienceMs = 300;

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: 'path' | 'query'; readonly schema: JsonSchema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonSchema }>> };
}

let product: Product;
let known: string[];

beforeAll(async () => {
  product = await startProduct();
  const { call } = product;
  const project = await call('PUT /api/projects', { body: { name: 'fuzz' } });
  const document = {
    project: 'fuzz',
    name: 'job',
    triggers: [{ name: 't', start: '2026-01-01T00:00:00Z', period: '1d', catchup: 'last' }],
    tasks: [
      { name: 'a', depends: ['trigger/t'] },
      { name: 'b', depends: ['task/a'] },
    ],
  };
  const { id } = await call('PUT /api/jobs', { body: JSON.stringify(document) });
  const tasks = await call('GET /api/jobs/{id}/tasks', { params: { id } });
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
  if ('id' in project) known = [project.id, id, ...tasks.map((task) => task.task_id), ...runs];
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const nasty = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '../../etc/passwd',
    "' or 1=1 --",
    '%00',
    '%',
    'null',
    '-1',
    '1e999',
    '99999999999999999999',
    '😀',
    '\uD800',
    '2026-02-30T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '275760-09-13T00:00:00Z',
    '9999-12-31T23:59:59.999999999+14:00',
  ),
);

/** As the schema says, sometimes one of the ids that exist, sometimes garbage. */
function parameter(schema: JsonSchema): fc.Arbitrary<string> {
  const good = arbitraryOf(schema).map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return fc.oneof(
    { arbitrary: good, weight: 3 },
    { arbitrary: fc.constantFrom(...known), weight: 3 },
    { arbitrary: nasty, weight: 2 },
  );
}

const contentTypes = [
  'application/json',
  'application/yaml',
  'application/json; charset=utf-8',
  'text/plain',
  'application/x-www-form-urlencoded',
  'nonsense',
  '',
];
const rawBody = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '{',
    '[[[[',
    '&a [*a, *a]',
    'a: 1\na: 2',
    '{"a":1e400}',
    '"\\u0000"',
    '!!js/function x',
    '['.repeat(5000),
  ),
);

interface Shown {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

interface Shot {
  readonly path: Record<string, string>;
  readonly query: Record<string, string | undefined>;
  readonly body: string | undefined;
  readonly type: string;
}

function shots(operation: Operation): fc.Arbitrary<Shot> {
  const among = (where: 'path' | 'query') =>
    Object.fromEntries(operation.parameters.filter((p) => p.in === where).map((p) => [p.name, parameter(p.schema)]));
  const schema = operation.requestBody?.content['application/json']?.schema;
  const good = (schema ? arbitraryOf(schema) : fc.jsonValue()).map((value) => JSON.stringify(value));
  const body =
    operation.requestBody === undefined
      ? fc.constant(undefined)
      : fc.oneof({ arbitrary: good, weight: 3 }, { arbitrary: rawBody, weight: 2 });
  const type = fc.oneof(
    { arbitrary: fc.constant('application/json'), weight: 4 },
    { arbitrary: fc.constantFrom(...contentTypes), weight: 1 },
  );
  return fc.record({
    path: fc.record(among('path')),
    query: fc.record(among('query'), { requiredKeys: [] }),
    body,
    type,
  });
}

async function shoot(key: string, shot: Shot): Promise<Shown | undefined> {
  const [method = '', template = ''] = key.split(' ');
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encode(shot.path[name] ?? ''));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(shot.query)) if (value !== undefined) query.set(name, value);
  const headers = new Headers({ authorization: `Bearer ${product.rootKey}` });
  if (shot.body !== undefined && shot.type !== '') headers.set('content-type', shot.type);
  const init = {
    method,
    headers,
    // given up, it might still change the slots after they were given back
    ...(key === slots ? {} : { signal: AbortSignal.timeout(patienceMs) }),
    ...(shot.body === undefined ? {} : { body: shot.body }),
  };
  try {
    // without a query, an event takes its own route
    const response = await fetch(`${product.url}${path}${query.size === 0 ? '' : `?${query}`}`, init);
    return { status: response.status, type: response.headers.get('content-type') ?? '', text: await response.text() };
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError') return undefined;
    throw error;
  }
}

/** Half a surrogate pair cannot be encoded; it goes out as its escape would. */
function encode(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

/** Faults are described in our own words, not in those of a library. */
const validatorsWords = /Invalid (?:input|option|string|key|record|ISO|URL)|Unrecognized key|Too (?:big|small)/;

function judge(key: string, endpoint: Endpoint, { status, type, text }: Shown): void {
  const told = `${key} answered ${status}: ${text.slice(0, 300)}`;
  expect(status, told).toBeLessThan(500);
  if (status >= 400) {
    expect(type, told).toBe('application/problem+json');
    expect(JSON.parse(text), told).toMatchObject({ status });
    expect(text, told).toMatch(/"code":"\w+".*"detail":"/);
    expect(text, told).not.toMatch(validatorsWords);
  } else if (typeof endpoint.answer !== 'string' && status !== 204) {
    const parsed = endpoint.answer.safeParse(JSON.parse(text));
    expect(parsed.error?.issues ?? [], told).toEqual([]);
  }
}

const slots = 'PUT /api/slots';
/** Revoking the very key we call with would end the test early. */
const left = new Set(['DELETE /api/keys/{id}']);

/** Few slots leave the tenant without a scheduler, as they should; what is shot at next needs one. */
async function giveSlotsBack(): Promise<void> {
  await product.call(slots, { body: { limit: 32 } });
  await until('it is healthy again', async () => (await fetch(`${product.url}/healthz`)).ok || undefined);
}

it.each(Object.keys(table).filter((key) => !left.has(key)))(
  '%s survives any input',
  { timeout: 60_000 },
  async (key) => {
    const endpoint = table[key];
    const { paths } = (await (await fetch(`${product.url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, Operation>>;
    };
    const [method = '', path = ''] = key.split(' ');
    const operation = paths[path]?.[method.toLowerCase()];
    if (endpoint === undefined || operation === undefined) throw new Error(`${key} is not described`);
    await fc.assert(
      fc.asyncProperty(shots(operation), async (shot) => {
        const response = await shoot(key, shot);
        if (response !== undefined) judge(key, endpoint, response);
      }),
      { numRuns: runsPerEndpoint, endOnFailure: true },
    );
    if (key === slots) await giveSlotsBack();
  },
);

it('the process is still healthy after all requests', async () => {
  expect((await fetch(`${product.url}/healthz`)).status).toBe(200);
  expect(product.output()).not.toContain('request failed');
});
