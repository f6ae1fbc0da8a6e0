/**
 * Bad input of the bus: no answer of 500 or more, every fault names its field, and nothing is written. Each body is a valid one in
 * which one field has a bad value, or a text that JSON does not allow.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { clientOf } from '../../../test/harness/bus-subscribers.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import type { Caller } from '../../contract/roles.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

const runs = Number(process.env['MILLRACE_FUZZ_RUNS'] ?? 12) * 8;
const callback = 'https://shop.example/events';
const url = 'https://shop.example/orders/1';
const operator = keyOf('operator');
const client = clientOf('shop');
const other = clientOf('other');

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  await api.db.exec(sql`delete from subscriber`);
  await api.db.exec(sql`delete from bus_topic`);
  await api.as(client)('POST /bus/subscription', { body: { topics: ['orders'], callback, uuid: 'u' } });
  await api.as(other)('POST /bus/subscription', { body: { topics: ['orders'], kind: 'pull' } });
});

/** Everything that a request could have written. */
async function everythingStored(): Promise<unknown> {
  return api.db.one(sql`
    select (select json_agg(t order by t.id) from bus_topic t) as topics,
           (select json_agg(s order by s.id) from subscriber s) as subscribers,
           (select json_agg(s order by s.subscriber_id, s.from_seq) from subscription s) as subscriptions,
           (select json_agg(r order by r.subscriber_id, r.strand) from reader r) as readers,
           (select json_agg(r order by r.id) from replay r) as replays,
           (select json_agg(e order by e.queue, e.key) from errand e) as errands,
           (select count(*) from bus_event) as bus_events,
           (select count(*) from publish_key) as publish_keys,
           (select count(*) from event) as events`);
}

interface Shot {
  readonly method: string;
  readonly path: string;
  readonly caller: Caller;
  readonly text: string;
  readonly headers?: Record<string, string>;
}

/** The answer, after the checks that every answer must pass. */
async function shoot({ method, path, caller, text, headers = {} }: Shot) {
  const before = await everythingStored();
  const answer = await api.fetch(method, path, { caller, body: text, headers });
  const body = await answer.text();
  const seen = `${method} ${path} ${text.slice(0, 300)} answered ${answer.status}: ${body.slice(0, 500)}`;
  expect(answer.status, seen).toBeLessThan(500);
  if (answer.status < 400) return { status: answer.status, paths: [], seen };
  expect(answer.headers.get('content-type'), seen).toBe('application/problem+json');
  expect(await everythingStored(), seen).toEqual(before);
  const { faults = [], detail } = JSON.parse(body) as { faults?: { path: string }[]; detail: string };
  expect(detail, seen).not.toMatch(/Invalid (?:input|option|string|key|record)|Unrecognized key|Too (?:big|small)/);
  return { status: answer.status, paths: faults.map((fault) => fault.path), seen };
}

/** Values as JSON, some of which are not even JSON. */
const badValues = fc.oneof(
  fc.constantFrom(
    'null',
    'true',
    '""',
    '" "',
    '-1',
    '0',
    '-0',
    '1.5',
    '1e400',
    '-1e400',
    '1e-400',
    '9007199254740993',
    '1E2',
    'NaN',
    'Infinity',
    '0x10',
    '01',
    '+1',
    '.5',
    '1.',
    "'a'",
    'undefined',
    '"\\u0000"',
    '"\\ud800"',
    '"a\\nb"',
    '[]',
    '{}',
    '[[]]',
    '[null]',
    '{"__proto__":{"a":1}}',
    '{"constructor":1}',
    '"millrace_x"',
    '"millrace_jobs"',
    '"a.b"',
    '"a/b"',
    '"../x"',
    '"É"',
    '"Orders"',
    '"orders\\n"',
    '"١"',
    '"😀"',
    '"%00"',
    '"now"',
    '"123"',
    '"2026-02-30T00:00:00Z"',
    '"0000-01-01T00:00:00Z"',
    '"275760-09-13T00:00:00Z"',
    '"9999999999999999"',
    '"http://x.example/"',
    '"https://x.example/?a"',
    '"https://"',
    '"https://x y/"',
    '"javascript:1"',
    '"//x"',
    '"https://u:p@x.example/"',
    '"https://x.example/#a"',
    '"https://[::1"',
    '"https://x.example:99999/"',
    '"(a+)+$"',
    '{"$regex":"(a+)+$"}',
    '{"data.a":{"$regex":"x"}}',
    '{"$or":[]}',
    '{"$or":[{"$not":{"$or":3}}]}',
    '{"$not":'.repeat(9) + '{}' + '}'.repeat(9),
    '['.repeat(300) + ']'.repeat(300),
    '{"a":'.repeat(250) + '1',
  ),
  fc.integer({ min: 1, max: 40_000 }).map((length) => JSON.stringify('a'.repeat(length))),
  fc.integer({ min: 1, max: 1_500 }).map((length) => JSON.stringify(Array.from({ length }, () => 'a'))),
  fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify(value)),
);

/** The body with one field replaced. */
function withField(body: object, field: string, value: string): string {
  const rest = Object.entries(body).filter(([name]) => name !== field);
  const fields = rest.map(([name, kept]) => `${JSON.stringify(name)}:${JSON.stringify(kept)}`);
  return `{${[...fields, `${JSON.stringify(field)}:${value}`].join()}}`;
}

const isJson = (text: string): boolean => {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
};

interface Call {
  readonly method: string;
  readonly path: string;
  readonly caller: Caller;
  readonly body: object;
  readonly fields: readonly string[];
}

const terms = ['topics', 'callback', 'uuid', 'timeout', 'max', 'filter', 'max_bytes', 'quiet', 'ordering', 'strands'];
const limits = ['rate', 'max_attempts', 'max_age', 'request_timeout', 'kind'];
const event = { type: 'update', url };
const own = { caller: client };
const exported = {
  name: 'copy--00000001',
  identity: newId(),
  topics: ['copied'],
  callback,
  timeout: 500,
  max: 100,
  filter: null,
  max_bytes: 1_048_576,
  quiet: false,
  ordering: 'subscriber',
  strands: 1,
  rate: null,
  max_attempts: null,
  max_age: null,
  request_timeout: null,
  kind: 'http',
  sealed: null,
};

const calls: Record<string, Call> = {
  publish: {
    ...own,
    method: 'POST',
    path: '/bus/topics/fresh',
    body: event,
    fields: ['type', 'url', 'timestamp', 'data', 'id', 'key', 'target'],
  },
  subscribe: {
    ...own,
    method: 'POST',
    path: '/bus/subscription',
    body: { topics: ['fresh'], callback },
    fields: [...terms, ...limits, 'colour', '__proto__'],
  },
  change: {
    ...own,
    method: 'PATCH',
    path: '/bus/subscriber',
    body: { topics: ['fresh'] },
    fields: [...terms, ...limits, 'colour'],
  },
  pause: { ...own, method: 'POST', path: '/bus/subscriber/pause', body: {}, fields: ['reason', 'x'] },
  resume: { ...own, method: 'POST', path: '/bus/subscriber/resume', body: {}, fields: ['from', 'x'] },
  secret: { ...own, method: 'POST', path: '/bus/subscriber/secret', body: {}, fields: ['secret', 'x'] },
  replay: {
    ...own,
    method: 'POST',
    path: '/bus/subscriber/replays',
    body: { from: '1' },
    fields: ['from', 'to', 'only_undelivered', 'x'],
  },
  ack: { caller: other, method: 'POST', path: '/bus/subscriber/batch/x/ack', body: {}, fields: ['lease', 'x'] },
  nack: { caller: other, method: 'POST', path: '/bus/subscriber/batch/x/nack', body: {}, fields: ['lease', 'delay'] },
  extend: { caller: other, method: 'POST', path: '/bus/subscriber/batch/x/extend', body: {}, fields: ['lease'] },
  'owner of a topic': {
    caller: operator,
    method: 'PUT',
    path: '/bus/topics/orders/owner',
    body: { id: newId(), name: 'n' },
    fields: ['id', 'name', 'x'],
  },
  export: { caller: operator, method: 'POST', path: '/bus/export', body: {}, fields: ['passphrase', 'x'] },
  import: {
    caller: operator,
    method: 'POST',
    path: '/bus/import',
    body: { version: 1, topics: [], subscribers: [] },
    fields: ['version', 'topics', 'subscribers', 'passphrase', 'x'],
  },
  'retry of errands': {
    caller: operator,
    method: 'POST',
    path: '/api/errands/retry',
    body: { queue: 'main', keys: ['x'] },
    fields: ['queue', 'keys', 'x'],
  },
};

describe('a bad value in one field', () => {
  it.each(Object.entries(calls))('of a body to %s is refused by its name, or accepted', async (_, call) => {
    const { method, path, caller, body, fields } = call;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...fields), badValues, async (field, value) => {
        const text = withField(body, field, value);
        const { status, paths, seen } = await shoot({ method, path, caller, text });
        if (status !== 400 || !isJson(text)) return;
        expect(paths, seen).not.toEqual([]);
        // a body that is too deep or too large is refused before its fields are known
        expect(
          paths.some((name) => name.split(/[.[\]]/).includes(field) || name === 'body'),
          seen,
        ).toBe(true);
      }),
      { numRuns: runs, endOnFailure: true },
    );
  });

  it('of a subscriber in an import is refused by its name, or accepted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(exported), 'x'), badValues, async (field, value) => {
        const one = withField({ ...exported, identity: newId() }, field, value);
        const text = `{"version":1,"topics":[],"subscribers":[${one}]}`;
        const { status, paths, seen } = await shoot({ method: 'POST', path: '/bus/import', caller: operator, text });
        if (status === 400 && isJson(text)) expect(paths, seen).not.toEqual([]);
      }),
      { numRuns: runs, endOnFailure: true },
    );
  });

  it('of one event among many refuses the whole request, and names the event', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 4 }), fc.constantFrom('type', 'url'), badValues, async (at, field, value) => {
        fc.pre(isJson(value) && !['"create"', '"update"'].includes(value));
        const good = Array.from({ length: 5 }, (_, i) => JSON.stringify({ ...event, url: `${url}/${i}` }));
        const text = `[${good.with(at, withField(event, field, value)).join()}]`;
        const { status, paths, seen } = await shoot({ method: 'POST', path: '/bus/topics/fresh', ...own, text });
        if (status !== 400) return;
        expect(
          paths.every((path) => path.startsWith(`[${at}]`) || path === 'body'),
          seen,
        ).toBe(true);
      }),
      { numRuns: runs, endOnFailure: true },
    );
  });
});

describe('a bad name in the path', () => {
  const names = fc.oneof(
    fc.constantFrom(
      'Orders',
      'a.b',
      'a%2Fb',
      '%00',
      '%0a',
      'orders%0a',
      'é',
      '%F0%9F%98%80',
      'a'.repeat(65),
      '1',
      '%20',
    ),
    fc.constantFrom('millrace_', 'millrace_jobs', 'millrace_x', '-', '__proto__', 'constructor', '*', '%25'),
    fc.string({ unit: 'binary', minLength: 1 }).map((text) => encodeURIComponent(text.toWellFormed())),
  );

  it('claims no topic', async () => {
    await fc.assert(
      fc.asyncProperty(names, async (name) => {
        fc.pre(!/^(?!millrace_)[a-z_]{1,64}$/.test(name) && !['.', '..'].includes(name));
        const text = JSON.stringify(event);
        const { status, seen } = await shoot({ method: 'POST', path: `/bus/topics/${name}`, ...own, text });
        expect([400, 403], seen).toContain(status);
      }),
      { numRuns: runs, endOnFailure: true },
    );
  });

  it.each(['GET /bus/subscribers/', 'DELETE /bus/subscribers/', 'GET /bus/dead_letters/', 'DELETE /bus/topics/'])(
    'of %s is a clear error',
    async (call) => {
      const [method = '', path = ''] = call.split(' ');
      await fc.assert(
        fc.asyncProperty(names, async (name) => {
          fc.pre(!['.', '..'].includes(name) && name !== 'replay');
          const before = await everythingStored();
          const answer = await api.fetch(method, path + name, { caller: operator });
          expect([400, 404], `${call}${name}: ${await answer.text()}`).toContain(answer.status);
          expect(await everythingStored()).toEqual(before);
        }),
        { numRuns: runs, endOnFailure: true },
      );
    },
  );
});

it('a body of any bytes and a key of any text is refused or stored, never a fault of ours', async () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('', ' ', '{', '[', '[]', '{}', 'null', 'true', '3', '"x"', '[[]]', '[null]', '[1,2]', '\uFEFF{}'),
    fc.constantFrom(
      '['.repeat(100_000),
      '{"a":'.repeat(100_000),
      `[${'{},'.repeat(1_000)}{}]`,
      `{"a":"${'\\"'.repeat(9)}`,
    ),
    fc.jsonValue().map((value) => JSON.stringify(value)),
  );
  const keys = fc.stringMatching(/^[!-~]{0,300}$/);
  await fc.assert(
    fc.asyncProperty(texts, keys, async (text, key) => {
      const headers = { 'idempotency-key': key };
      await shoot({ method: 'POST', path: '/bus/topics/fresh', ...own, text, headers });
    }),
    { numRuns: runs, endOnFailure: true },
  );
});
