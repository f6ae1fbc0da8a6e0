/**
 * The worst input that a client can send, with a key and without: meanwhile, no other client waits for more than 200 ms.
 *
 * A new kind of input is a line in one of the tables. `send` resolves when the server has dealt with it.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { maxHolds } from '../../src/contract/wire.ts';
import { newId } from '../../src/kernel/id.ts';
import { measureBlocking } from '../harness/blocking.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { openRaw } from '../harness/raw-http.ts';

const longestWaitMs = 200;

let product: Product;
/** Keys by role. */
let keys: Record<'worker' | 'operator', string>;

beforeAll(async () => {
  product = await startProduct({ args: ['--no-worker'] });
  const keyOf = async (role: 'worker' | 'operator'): Promise<string> =>
    (await product.call('POST /api/keys', { body: { name: role, role } })).key;
  keys = { worker: await keyOf('worker'), operator: await keyOf('operator') };
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

interface WorstInput {
  readonly what: string;
  readonly send: () => Promise<void>;
}

/** Sends each text on a connection of its own, and waits for an answer to each, or its end. */
async function sendRaw(texts: readonly string[]): Promise<void> {
  await Promise.all(
    texts.map(async (text) => {
      const connection = openRaw(product.url);
      connection.send(text);
      await connection.waitForAnswers(1);
      connection.socket.destroy();
    }),
  );
}

const repeat = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`;

async function post(path: string, key: string | undefined, body: string, type = 'application/json'): Promise<number> {
  const headers = { 'content-type': type, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
  const answer = await fetch(product.url + path, { method: 'POST', headers, body });
  await answer.text();
  return answer.status;
}

/** As much as fits into the headers that Node reads. */
const fill = (text: string): string => text.repeat(Math.floor(15_000 / text.length));

describe('without a key', () => {
  const inputs: WorstInput[] = [
    ...[`gzip${' '.repeat(15_000)}x`, `gzip;q=0.${'1'.repeat(15_000)}x`, fill('gzip ;,')].map((accepts, i) => ({
      what: `twenty requests for a page with a long Accept-Encoding, of kind ${i + 1}`,
      send: () => sendRaw(repeat(20, get('/', `Accept-Encoding: ${accepts}\r\n`))),
    })),
    {
      what: 'a hundred requests for the documentation',
      send: () => sendRaw(repeat(100, get('/docs', 'Accept-Encoding: gzip\r\n'))),
    },
    {
      what: 'sixty requests for the description of the API',
      send: () => sendRaw(repeat(60, get('/openapi.json', 'Accept-Encoding: gzip\r\n'))),
    },
    { what: 'fifty requests for the schema of documents', send: () => sendRaw(repeat(50, get('/api/jobs/schema'))) },
    {
      what: '1.2 MB of pipelined requests, by a client that does not wait for answers',
      send: async () => {
        const connection = openRaw(product.url);
        await new Promise((resolve) => {
          connection.socket.once('close', resolve);
          connection.socket.write(get('/docs').repeat(30_000), resolve);
        });
        connection.socket.destroy();
      },
    },
    {
      what: '2,000 pipelined requests on each of eight connections',
      send: async () => {
        const connections = repeat(8, '').map(() => openRaw(product.url));
        for (const { send } of connections) send(get('/docs').repeat(2_000));
        await Promise.all(connections.map(({ socket }) => new Promise((resolve) => socket.once('close', resolve))));
      },
    },
    {
      what: 'long paths and queries',
      send: () =>
        sendRaw(
          [
            fill('/'),
            fill('/a'),
            `/t/${fill('%2f')}`,
            fill('/%25'),
            `/?${fill('a&')}`,
            `/api/runs?${fill('limit=1&')}`,
          ].map((path) => get(path.startsWith('/') ? path : `/${path}`)),
        ),
    },
    {
      what: 'long cookies, host names and credentials',
      send: () =>
        sendRaw([
          get('/api/me', `Cookie: ${fill('a=b; ')}\r\n`),
          get('/api/me', `Cookie: ${fill('=;')}\r\n`),
          `GET /api/me HTTP/1.1\r\nHost: ${fill(':1')}\r\n\r\n`,
          get('/api/me', `Authorization: Bearer${' '.repeat(15_000)}x\r\n`),
          get('/api/me', `Authorization: Basic ${fill('OjpA')}\r\n`),
          get('/api/me', `Origin: http://${fill('a.')}\r\n`),
        ]),
    },
    {
      what: 'a hundred upgrades to protocols that are not served',
      send: () => sendRaw(repeat(100, get('/healthz', 'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n'))),
    },
    {
      what: 'bodies of all kinds at the sign-in',
      send: async () => {
        const bodies = ['['.repeat(4_000), `{"key":"${'x'.repeat(4_000)}"}`, `[${'{},'.repeat(1_300)}{}]`];
        for (const body of bodies) expect(await post('/api/session', undefined, body)).toBe(400);
        expect(await post('/api/session', undefined, '-'.repeat(4_000), 'multipart/form-data; boundary=-')).toBe(415);
      },
    },
  ];

  it.each(inputs.map(({ what, send }) => [what, send] as const))('%s', { timeout: 120_000 }, async (_, send) => {
    const watched = { url: product.url, pid: product.child.pid ?? 0 };
    expect(await measureBlocking(watched, send, longestWaitMs)).toBeLessThanOrEqual(longestWaitMs);
  });

  it('a hundred and fifty bodies of 4 MiB are refused unread, and take no memory', { timeout: 120_000 }, async () => {
    const head = `POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 4194304\r\n\r\n`;
    await sendRaw(repeat(150, head));
    const before = await residentBytes();
    const connections = repeat(150, '').map(() => openRaw(product.url));
    for (const { send } of connections) send(head + ' '.repeat(4_194_303));
    await Promise.all(connections.map(({ waitForAnswers }) => waitForAnswers(1)));
    expect(connections.filter((each) => each.answers() > 0).every((each) => each.text().includes(' 413 '))).toBe(true);
    expect((await residentBytes()) - before).toBeLessThan(150 * 1024 * 1024);
    for (const { socket } of connections) socket.destroy();
  });

  it('connections that never finish their request do not delay others', { timeout: 120_000 }, async () => {
    const head =
      'POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n';
    const connections = repeat(200, '').map(() => openRaw(product.url));
    for (const [i, { send }] of connections.entries()) send(i % 2 === 0 ? head : `${head}\r\n{"key":`);
    const watched = { url: product.url, pid: product.child.pid ?? 0 };
    const work = async (): Promise<void> => void (await fetch(`${product.url}/readyz`));
    expect(await measureBlocking(watched, work, longestWaitMs)).toBeLessThanOrEqual(longestWaitMs);
    for (const { socket } of connections) socket.destroy();
  });
});

describe('with a key', () => {
  const identity = { worker: newId(), incarnation: 1 };
  const beat = { ...identity, name: '', addr: '', version: '', places: 0, runtimes: [], queues: [], seen: {} };
  const inputs: WorstInput[] = [
    {
      what: 'ten thousand reports of which each is wrong',
      send: async () => {
        const body = JSON.stringify({ ...identity, reports: repeat(10_000, {}) });
        expect(await post('/internal/report', keys.worker, body)).toBe(400);
      },
    },
    {
      what: 'a heartbeat that holds a hundred thousand times nothing',
      send: async () => {
        const body = JSON.stringify({ ...beat, holds: repeat(100_000, {}) });
        expect(await post('/internal/heartbeat', keys.worker, body)).toBe(400);
      },
    },
    {
      what: 'a heartbeat of 3 MB of brackets',
      send: async () => expect(await post('/internal/heartbeat', keys.worker, '['.repeat(3_000_000))).toBe(400),
    },
    {
      what: 'a heartbeat of 3 MB of empty lists',
      send: async () =>
        expect(await post('/internal/heartbeat', keys.worker, `[${'[],'.repeat(1_000_000)}[]]`)).toBe(400),
    },
    {
      what: 'a heartbeat that names as many runs as a worker may hold',
      send: async () => {
        const tenant = newId();
        const holds = repeat(maxHolds, 0).map(() => ({ tenant, run: newId(), lease: 1 }));
        expect(await post('/internal/heartbeat', keys.worker, JSON.stringify({ ...beat, holds }))).toBe(200);
      },
    },
    {
      what: 'a heartbeat whose runs are all of different tenants',
      send: async () => {
        const holds = repeat(maxHolds, 0).map(() => ({ tenant: newId(), run: newId(), lease: 1 }));
        expect(await post('/internal/heartbeat', keys.worker, JSON.stringify({ ...beat, holds }))).toBe(200);
      },
    },
    {
      what: 'a heartbeat with very many kinds of work that are unavailable',
      send: async () => {
        const unavailable = Object.fromEntries(repeat(9_900, 0).map((_, i) => [`k${i}`, 'x'.repeat(200)]));
        const body = JSON.stringify({ ...beat, holds: [], unavailable });
        expect(await post('/internal/heartbeat', keys.worker, body)).toBe(400);
      },
    },
    {
      what: 'ten thousand reports of runs and tenants that nobody knows',
      send: async () => {
        const ended = { lease: 1, state: 'success', reason: null, exit_code: 0, started_at: '2030-01-31T00:00:00Z' };
        const reports = repeat(10_000, 0).map(() => ({ tenant: newId(), run: newId(), ...ended }));
        expect(await post('/internal/report', keys.worker, JSON.stringify({ ...identity, reports }))).toBe(200);
      },
    },
    {
      what: 'a claim whose epochs are very many',
      send: async () => {
        const seen = Object.fromEntries(repeat(15_000, 0).map((_, i) => [`e${i}`, 1]));
        const body = JSON.stringify({ ...identity, free: 0, runtimes: [], queues: ['q'], wait_ms: 0, seen });
        expect(await post('/internal/claim', keys.worker, body)).toBe(400);
      },
    },
    {
      what: 'an activation of a thousand things, each wrong',
      send: async () => {
        const body = JSON.stringify({ tasks: repeat(1_000, 1), instants: repeat(1_000, 'x'.repeat(500)) });
        expect(await post(`/api/jobs/${newId()}/activate`, keys.operator, body)).toBe(400);
      },
    },
    {
      what: 'params of very many and very deep values',
      send: async () => {
        const path = `/api/jobs/${newId()}/run`;
        expect(await post(path, keys.operator, `{"params":{"a":${'['.repeat(900_000)}`)).toBe(400);
        const many = Object.fromEntries(repeat(60_000, 0).map((_, i) => [`p${i}`, 1]));
        expect(await post(path, keys.operator, JSON.stringify({ params: many }))).toBeGreaterThanOrEqual(400);
      },
    },
  ];

  it.each(inputs.map(({ what, send }) => [what, send] as const))('%s', { timeout: 120_000 }, async (_, send) => {
    const watched = { url: product.url, pid: product.child.pid ?? 0 };
    expect(await measureBlocking(watched, send, longestWaitMs)).toBeLessThanOrEqual(longestWaitMs);
  });
});

async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${product.child.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}
