/** A key, session or credential of one tenant gives no access to another, however its path is written. */
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { tenantEndpoints } from '../../api/endpoints.ts';
import { newId } from '../../kernel/id.ts';
import { gatewayEndpoints } from '../installation/endpoints.ts';
import { makeListener } from './listener.ts';

const mark = 'only-of-b';
let fleet: Fleet;
let gateway: TestGateway;
let run: string;
/** The headers of callers of tenant a. */
let callers: Record<string, Record<string, string>>;

beforeAll(async () => {
  fleet = await makeFleet(['default', 'a', 'b']);
  gateway = makeTestGateway(fleet);
  const root = bearer(await gateway.key('root', null));
  const made = await gateway.fetch('PUT', '/t/b/api/projects', root, { name: mark, description: mark });
  expect(made.status).toBe(201);
  [run = ''] = (await fleet.tenants[2]?.ready(1)) ?? [];
  const operator = await gateway.key('operator', 'a');
  callers = {
    operator: bearer(operator),
    viewer: bearer(await gateway.key('viewer', 'a')),
    publisher: bearer(await gateway.key('publisher', 'a')),
    subscriber: bearer(await gateway.key('subscriber', 'a')),
    basic: { authorization: `Basic ${Buffer.from(`${operator}:b`).toString('base64')}` },
    session: { cookie: await gateway.session(operator) },
    task: bearer(gateway.secrets.signRun({ tenant: fleet.tenants[1]?.row.id ?? '', run: newId(), lease: 1 })),
  };
});
afterAll(() => fleet.close());

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

function pathOf(key: string): [method: string, path: string] {
  const [method = '', path = ''] = key.split(' ');
  const values: Record<string, string> = { instant: '2026-01-01T00:00:00.000Z', id: run, name: 'b', key: 'k' };
  return [method, path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? run))];
}

async function answerOf(
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<[status: number, isShown: boolean]> {
  const body = method === 'GET' || method === 'DELETE' ? undefined : {};
  const response = await gateway.fetch(method, path, headers, body);
  if (response.headers.get('content-type') === 'text/event-stream') {
    await response.body?.cancel();
    return [response.status, true];
  }
  return [response.status, (await response.text()).includes(mark)];
}

const names = ['operator', 'viewer', 'publisher', 'subscriber', 'basic', 'session', 'task'] as const;

describe.each(names)('caller of another tenant (%s)', (name) => {
  it.each(['/t/b', '/t/%62', '/t/a/../b', '/t/a/%2e%2e/b', '/t/x/../%62'])(
    'every endpoint below %s is forbidden',
    async (prefix) => {
      for (const key of [...Object.keys(tenantEndpoints), ...Object.keys(gatewayEndpoints)]) {
        const [method, path] = pathOf(key);
        expect([key, ...(await answerOf(method, prefix + path, callers[name] ?? {}))]).toEqual([key, 403, false]);
      }
    },
  );

  it.each(['', '/t/default'])('every endpoint of the default tenant below "%s" is forbidden', async (prefix) => {
    for (const key of Object.keys(tenantEndpoints)) {
      const [method, path] = pathOf(key);
      // links belong to no tenant's paths, and keys are not looked at
      const expected = prefix === '' && path.startsWith('/answers/') ? 404 : 403;
      expect([key, ...(await answerOf(method, prefix + path, callers[name] ?? {}))]).toEqual([key, expected, false]);
    }
  });

  it('no other spelling of a path gives access', async () => {
    const prefixes = ['/t/a/t/b', '/t/b/t/a', '//t/b', '/t//b', '/t/b/', '/T/b', '/t/B', '/t/a%2f..%2fb', '/t/a;/t/b'];
    const more = ['/t/%2562', '/t/b%00', '/t/a\\..\\b', '/t/a/..%2fb', '/t/b%20', '/t/.', '/t/b/..;/b'];
    for (const prefix of [...prefixes, ...more]) {
      for (const path of ['/api/projects', `/api/projects?name=${mark}`, '/api/changes', '/api/events', '/api/jobs/']) {
        const [status, isShown] = await answerOf('GET', prefix + path, callers[name] ?? {});
        expect([prefix + path, status >= 400 && status < 500, isShown]).toEqual([prefix + path, true, false]);
      }
    }
  });

  it('no header gives access', async () => {
    const tricks = {
      'x-tenant': 'b',
      'x-forwarded-prefix': '/t/b',
      'x-original-url': '/t/b/api/projects',
      tenant: 'b',
    };
    const own = await answerOf('GET', '/t/a/api/projects', { ...callers[name], ...tricks });
    expect(own[1]).toBe(false);
    const override = { 'x-rewrite-url': '/t/a/api/projects', 'x-http-method-override': 'GET' };
    expect(await answerOf('GET', '/t/b/api/projects', { ...callers[name], ...override })).toEqual([403, false]);
  });
});

it('a key and a session have access to their own tenant', async () => {
  for (const name of ['operator', 'viewer', 'basic', 'session'] as const)
    expect(await answerOf('GET', '/t/a/api/projects', callers[name] ?? {})).toEqual([200, false]);
  expect(await answerOf('GET', '/t/%61/api/projects', callers['viewer'] ?? {})).toEqual([200, false]);
});

it('a caller without a key reads nothing of a tenant', async () => {
  for (const key of Object.keys(tenantEndpoints)) {
    const [method, path] = pathOf(key);
    expect([key, ...(await answerOf(method, `/t/b${path}`, {}))]).toEqual([key, 401, false]);
  }
});

it('the WebSocket of a log is forbidden to callers of another tenant', async () => {
  const listener = makeListener({ gateway: gateway.gateway, host: '127.0.0.1', port: 0, tls: undefined });
  await listener.start();
  try {
    for (const prefix of ['/t/b', '/t/%62', '/t/a/../b', '', '/t/default']) {
      for (const name of names) {
        const url = `${listener.url().replace('http', 'ws')}${prefix}/api/task_runs/${run}/logs`;
        expect([prefix, name, await handshake(url, callers[name] ?? {})]).toEqual([prefix, name, 403]);
      }
    }
  } finally {
    await listener.stop();
  }
});

/** The status of the rejection; 101: the WebSocket was opened. */
function handshake(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers });
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
    socket.on('open', () => {
      socket.terminate();
      resolve(101);
    });
    socket.on('error', reject);
  });
}
