/** The handling of connections and headers by the listener. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { openRaw } from '../../../test/harness/raw-http.ts';
import { type Listener, makeListener } from './listener.ts';

let fleet: Fleet;
let gateway: TestGateway;
let listener: Listener;

beforeAll(async () => {
  fleet = await makeFleet(['default']);
  gateway = makeTestGateway(fleet);
  listener = makeListener({ gateway: gateway.gateway, host: '127.0.0.1', port: 0, tls: undefined });
  await listener.start();
});
afterAll(async () => {
  await listener.stop();
  await fleet.close();
});

/** The headers that curl sends with `--http2`, and Java's HttpClient by default. */
const h2c = 'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n';
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`;

async function answersTo(...requests: string[]): Promise<string[]> {
  const connection = openRaw(listener.url());
  for (const [i, request] of requests.entries()) {
    connection.send(request);
    await connection.waitForAnswers(i + 1);
  }
  connection.socket.destroy();
  return connection.text().split('HTTP/1.1 ').slice(1);
}

it('an upgrade to an unsupported protocol is ignored: the request and the next one are answered', async () => {
  const answers = await answersTo(get('/healthz', h2c), get('/healthz'), get('/readyz', h2c));
  expect(answers.map((answer) => answer.slice(0, 6))).toEqual(['200 OK', '200 OK', '200 OK']);
});

it('a body that comes with an ignored upgrade is read', async () => {
  const key = await gateway.key('root', null);
  const body = JSON.stringify({ name: 'made with an upgrade', role: 'viewer' });
  const headers = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const post = `POST /api/keys HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}${h2c}\r\n${body}`;
  const answers = await answersTo(post, get('/healthz'));
  expect(answers[0]).toMatch(/^201 [^]*made with an upgrade/);
  expect(answers[1]).toMatch(/^200 /);
});

it('unfinished bodies of a viewer at the sign-in do not keep others from sending documents', async () => {
  const viewer = await gateway.key('viewer', 'default');
  const headers = `Authorization: Bearer ${viewer}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
  const connections = Array.from({ length: 20 }, () => openRaw(listener.url()));
  for (const { send } of connections) send(`POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n1\r\n{\r\n`);
  // the 100-continue is sent after the headers were read
  const expecting = openRaw(listener.url());
  expecting.send(`POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n${headers}\r\n`);
  await expecting.waitForAnswers(1);
  const answer = await fetch(`${listener.url()}/api/jobs?dry_run=true`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await gateway.key('operator', 'default')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ description: 'x'.repeat(100_000) }),
  });
  expect(answer.status).toBe(400);
  for (const { socket } of [...connections, expecting]) socket.destroy();
});

it('a WebSocket handshake for a path other than a log is answered as a plain request', async () => {
  const handshake =
    'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  expect((await answersTo(get('/healthz', handshake)))[0]).toMatch(/^200 /);
  expect((await answersTo(get('/api/nothing', handshake)))[0]).toMatch(/^404 /);
  // the log of a run needs a key
  expect((await answersTo(get('/api/task_runs/x/logs', handshake)))[0]).toMatch(/^401 /);
});

it('a client that disconnects before its body is complete causes no error in the log', async () => {
  const errors = vi.spyOn(gateway.context.log, 'error');
  const authorization = `Authorization: Bearer ${await gateway.key('root', null)}\r\n`;
  const length = 'Content-Type: application/json\r\nContent-Length: 100\r\n';
  const chunked = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n';
  const heads = ['/api/session', '/api/keys', '/t/default/api/session', '/t/default/api/keys'].flatMap((path) =>
    [length, chunked].map((how) => `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}${how}\r\n`),
  );
  const reads = vi.spyOn(gateway.gateway, 'fetch');
  for (const head of heads) {
    const connection = openRaw(listener.url());
    connection.send(head.includes('chunked') ? `${head}5\r\n{"key\r\n` : `${head}{"key":`);
    await vi.waitFor(() => expect(reads).toHaveBeenCalledOnce());
    connection.socket.resetAndDestroy();
    await reads.mock.results[0]?.value;
    reads.mockClear();
  }
  expect(errors.mock.calls).toEqual([]);
  reads.mockRestore();
  errors.mockRestore();
});

it('every answer keeps a browser from guessing its type, framing it, and running anything in it', async () => {
  const key = { authorization: `Bearer ${await gateway.key('root', null)}` };
  const paths = [
    '/healthz',
    '/openapi.json',
    '/docs',
    '/metrics',
    '/api/runs',
    '/api/projects/x',
    '/api/nothing',
    '/no-page.js',
  ];
  for (const path of paths) {
    const { headers } = await fetch(listener.url() + path, { headers: key });
    expect(headers.get('x-content-type-options'), path).toBe('nosniff');
    expect(headers.get('x-frame-options'), path).toBe('DENY');
    expect(headers.get('referrer-policy'), path).toBe('no-referrer');
    expect(headers.get('content-security-policy'), path).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
  }
});

it('the description of the API is compressed for clients that accept gzip, and not sent again to those that have it', async () => {
  for (const path of ['/docs', '/openapi.json']) {
    const answer = await fetch(listener.url() + path, { headers: { 'accept-encoding': 'gzip' } });
    expect(answer.headers.get('content-encoding'), path).toBe('gzip');
    expect(await answer.text(), path).toContain('/internal/claim');
    const again = await fetch(listener.url() + path, {
      headers: { 'if-none-match': answer.headers.get('etag') ?? '' },
    });
    expect(again.status, path).toBe(304);
  }
});

describe('with a certificate', () => {
  let folder = '';
  let secure: Listener;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-tls-'));
    const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const made = ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', tls.key, '-out', tls.cert, '-nodes'];
    execFileSync('openssl', [...made, '-subj', '/CN=localhost', '-days', '1'], { stdio: 'ignore' });
    secure = makeListener({ gateway: gateway.gateway, host: '127.0.0.1', port: 0, tls, handshakeMs: 300 });
    await secure.start();
  });
  afterAll(async () => {
    await secure.stop();
    await rm(folder, { recursive: true });
  });

  /** Resolves when the server has closed the connection. */
  const closedAfter = (bytes: Buffer): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(Number(new URL(secure.url()).port), '127.0.0.1', () => socket.write(bytes));
      socket.on('error', () => {}).on('close', () => resolve());
      socket.resume();
    });

  it.each([
    ['sends nothing', Buffer.alloc(0)],
    ['begins a handshake and does not go on', Buffer.from([0x16, 3, 1, 1, 0x58, 1, 0, 1, 0x54, 3, 3])],
    ['speaks plain HTTP', Buffer.from(get('/healthz'))],
    [
      'sends a record that is longer than TLS allows',
      Buffer.concat([Buffer.from([0x16, 3, 1, 255, 255]), Buffer.alloc(65_535)]),
    ],
    ['sends a megabyte of garbage', Buffer.alloc(1_000_000, 0x41)],
  ])('a client that %s is disconnected, and others are served', async (_, bytes) => {
    await closedAfter(bytes);
    const agent = new Agent({ rejectUnauthorized: false });
    const status = await new Promise((resolve, reject) => {
      request(`${secure.url()}/healthz`, { agent }, (answer) => resolve(answer.resume().statusCode))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(200);
  });
});
