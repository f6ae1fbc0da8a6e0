/** A stream ends with the key or session that opened it; streams of others continue. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { everyone } from '../../contract/channels.ts';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { until } from '../../../test/harness/until.ts';
import { silent } from '../../kernel/log.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { hashOf } from '../access/callers.ts';
import { type Listener, makeListener } from './listener.ts';
import { OpenStreams } from './open-streams.ts';

type Headers = Record<string, string>;

let fleet: Fleet;
let gateway: TestGateway;
let listener: Listener;
let run: string;
/** A stream that must stay open throughout. */
let bystander: Stream;

beforeAll(async () => {
  fleet = await makeFleet(['a']);
  [run = ''] = (await fleet.tenants[0]?.ready(1)) ?? [];
});
afterAll(() => fleet.close());
beforeEach(async () => {
  gateway = makeTestGateway(fleet);
  const { hub, streams } = gateway.context;
  hub.on('revoked', everyone, () => streams.check());
  listener = makeListener({ gateway: gateway.gateway, host: '127.0.0.1', port: 0, tls: undefined });
  await listener.start();
  bystander = await opened('/api/events', bearer(await gateway.key('operator', 'a')));
});
afterEach(async () => {
  expect(bystander.isOver()).toBe(false);
  await listener.stop();
});

const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

interface Stream {
  readonly isOver: () => boolean;
}

async function opened(path: string, headers: Headers): Promise<Stream> {
  const response = await fetch(`${listener.url()}/t/a${path}`, { headers });
  expect(response.status).toBe(200);
  let over = false;
  // closed normally, so that a reader does not take it for an error
  void response.text().then(
    () => (over = true),
    () => {},
  );
  return { isOver: () => over };
}

async function openedSocket(headers: Headers): Promise<Stream> {
  const socket = new WebSocket(`${listener.url().replace('http', 'ws')}/t/a/api/task_runs/${run}/logs`, { headers });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return { isOver: () => socket.readyState === WebSocket.CLOSED };
}

/** One stream of each kind. */
function all(headers: Headers): Promise<Stream[]> {
  const paths = ['/api/events', '/api/changes', `/api/runs/${run}/logs?follow=true`];
  return Promise.all([...paths.map((path) => opened(path, headers)), openedSocket(headers)]);
}

const over = (streams: readonly Stream[]): Promise<unknown> =>
  until('all are over', () => streams.every((stream) => stream.isOver()) || undefined);

it('all streams of a key and its sessions end when the key is revoked', async () => {
  const root = bearer(await gateway.key('root', null));
  const body = { name: 'k', role: 'viewer', tenant: 'a' };
  const made = (await (await gateway.fetch('POST', '/api/keys', root, body)).json()) as { id: string; key: string };
  const basic = { authorization: `Basic ${Buffer.from(`${made.key}:`).toString('base64')}` };
  const session = { cookie: await gateway.session(made.key) };
  const streams = [...(await all(bearer(made.key))), ...(await all(basic)), ...(await all(session))];
  expect(streams.some((stream) => stream.isOver())).toBe(false);
  expect((await gateway.fetch('DELETE', `/api/keys/${made.id}`, root)).status).toBe(204);
  await over(streams);
});

it('all streams of a session end with it, and those of its key continue', async () => {
  const key = await gateway.key('operator', 'a');
  const cookie = await gateway.session(key);
  const [streams, ofKey] = [await all({ cookie }), await all(bearer(key))];
  const left = await gateway.fetch('DELETE', '/api/session', { cookie, origin: 'http://127.0.0.1' });
  expect(left.status).toBe(204);
  await over(streams);
  expect(ofKey.some((stream) => stream.isOver())).toBe(false);
});

it('a sign-out without a session is answered, and no revocation is sent', async () => {
  let revocations = 0;
  const stop = gateway.context.hub.on('revoked', everyone, () => revocations++);
  const signOut = (cookie: string) =>
    gateway.fetch('DELETE', '/api/session', { cookie, origin: 'http://127.0.0.1' }).then(({ status }) => status);
  expect([await signOut(''), await signOut('millrace_test=mrs_made-up'), revocations]).toEqual([204, 204, 0]);
  const cookie = await gateway.session(await gateway.key('operator', 'a'));
  expect([await signOut(cookie), revocations, await signOut(cookie), revocations]).toEqual([204, 1, 204, 1]);
  stop();
});

it('the sweep finds a revocation whose wake-up was lost, and an expired session', async () => {
  const [key, other] = [await gateway.key('operator', 'a'), await gateway.key('operator', 'a')];
  const cookie = await gateway.session(other);
  const streams = [...(await all(bearer(key))), ...(await all({ cookie }))];
  await fleet.control.db.exec(sql`update key set revoked_at = now() where hash = ${hashOf(key)}`);
  await fleet.control.db.exec(sql`update session set expires_at = ${new Date(fleet.time.now())}`);
  const { service } = gateway.context.streams;
  await service.start();
  await over(streams);
  await service.stop();
});

it('a key has at most 100 streams of all kinds; one that ends makes room, and other keys have their own limit', async () => {
  const headers = bearer(await gateway.key('viewer', 'a'));
  const client = new AbortController();
  const open = (path: string): Promise<Response> =>
    fetch(`${listener.url()}/t/a${path}`, { headers, signal: client.signal });
  const paths = ['/api/events', '/api/changes', `/api/runs/${run}/logs?follow=true`];
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => open(paths[i % 3] ?? '')));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  for (const path of paths) {
    const refused = await open(path);
    const detail = expect.stringContaining('has 100 streams') as unknown;
    expect([refused.status, await refused.json()]).toMatchObject([429, { code: 'too_many', detail }]);
  }
  await opened('/api/events', bearer(await gateway.key('viewer', 'a')));
  await answers[0]?.body?.cancel();
  await until('there is room again', async () => (await open('/api/events')).status === 200 || undefined);
  client.abort();
});

it('a stream that is over or was cancelled is forgotten: the control database is not queried for it', async () => {
  const { db } = fleet.control;
  const asked: Buffer[][] = [];
  const rows: Db['rows'] = (query) => {
    asked.push(query.compile().values[0] as Buffer[]);
    return db.rows(query);
  };
  const streams = new OpenStreams({ control: { ...db, rows }, time: fleet.time, log: silent });
  const keep = (hash: string, source: ReadableStream): ReadableStream | null =>
    streams.keep(new Response(source), hashOf(hash)).body;
  const left = keep('left', new ReadableStream());
  const ended = keep('ended', new ReadableStream({ start: (controller) => controller.close() }));
  const fault = new Error('broken');
  const broken = keep('broken', new ReadableStream({ start: (controller) => controller.error(fault) }));
  keep('open', new ReadableStream());
  await left?.cancel();
  expect(await new Response(ended).text()).toBe('');
  await expect(new Response(broken).text()).rejects.toThrow('broken');
  streams.check();
  expect(asked).toEqual([[hashOf('open')]]);
});
