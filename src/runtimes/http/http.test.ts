/** The runtime `http` against real receivers: what it sends, how it judges answers, and what its log hides. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createNet, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { makeTask, Recorder } from '../../../test/conformance/task.ts';
import { maxResultBytes } from '../../contract/wire.ts';
import { parseRanges } from '../../outbound/addresses.ts';
import type { Outcome, Task } from '../contract.ts';
import { asWritten } from '../work.ts';
import { http } from './block.ts';
import { httpRuntime } from './http.ts';

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

async function receiver(answer: (to: ServerResponse, got: Received) => unknown) {
  const got: Received[] = [];
  const receive = async (incoming: IncomingMessage, to: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method, url, headers } = incoming;
    const received = { method, url, headers, body: Buffer.concat(chunks).toString() };
    got.push(received);
    answer(to, received);
  };
  const server = createServer((incoming, to) => void receive(incoming, to));
  return { base: await listen(server), got };
}

const never = new AbortController().signal;
const open = httpRuntime({ allowHttp: true, allowed: parseRanges(['127.0.0.1'], 'MILLRACE_HTTP') });

/** A task with this field of a document, and these values of its headers. */
function taskOf(field: object, env: Record<string, string> = {}, secrets: readonly string[] = []): Task {
  const block = { ...http.build(http.schema.parse(field)), kind: 'http' };
  return { ...makeTask(http.expand(block, asWritten), env), secrets: new Set(secrets) };
}

async function send(field: object, { env = {}, secrets = [], runtime = open }: Sending = {}) {
  const output = new Recorder();
  const task = taskOf(field, env, secrets);
  const outcome = await runtime.run(task, output, never);
  return { outcome, task, log: output.text() };
}

interface Sending {
  readonly env?: Record<string, string>;
  readonly secrets?: readonly string[];
  readonly runtime?: typeof open;
}

const resultOf = ({ result = 'null' }: Outcome): unknown => JSON.parse(result);

describe('the request', () => {
  it('has method, path, headers, a JSON body and an idempotency key', async () => {
    const { base, got } = await receiver((to) => to.end());
    const field = { method: 'PUT', url: `${base}/orders?x=1`, headers: { 'X-Id': '7' }, body: { a: [1, null] } };
    const { outcome, task } = await send(field, { env: { 'X-Id': '7', MILLRACE_CREDENTIAL: 'secret' } });
    expect(outcome).toMatchObject({ state: 'success', reason: null, exitCode: null });
    expect(got).toMatchObject([
      {
        method: 'PUT',
        url: '/orders?x=1',
        body: '{"a":[1,null]}',
        headers: { 'x-id': '7', 'content-type': 'application/json', 'idempotency-key': task.facts.run },
      },
    ]);
    // variables of a task that are no headers stay here
    expect(JSON.stringify(got)).not.toContain('secret');
    expect(got[0]?.headers).not.toHaveProperty('millrace-answer-url');
  });

  it('of a node has execution, node and attempt as its key, and the link for the answer', async () => {
    const { base, got } = await receiver((to) => to.end());
    const { facts, ...task } = taskOf({ url: base });
    const node = { execution: 'e', id: '0_1-3', name: 'send' };
    const ofNode = { ...facts, instant: null, task: null, job: null, attempt: 2, node };
    const work = { ...task.work, answerUrl: 'https://m.test/answers/mra_x' } as Task['work'];
    const output = new Recorder();
    await open.run({ ...task, work, facts: ofNode }, output, never);
    expect(got[0]?.headers).toMatchObject({
      'idempotency-key': 'e/0_1-3/2',
      'millrace-answer-url': 'https://m.test/answers/mra_x',
    });
    expect(output.text()).toContain('> millrace-answer-url: ***\n');
  });

  it.each([
    ['a text is sent as JSON', 'a=1', {}, '"a=1"', 'application/json'],
    ['a text of another type is sent as it is', 'a=1', { 'Content-Type': 'text/plain' }, 'a=1', 'text/plain'],
    [
      'a text of a JSON type is sent as JSON',
      'a',
      { 'content-type': 'application/x+json' },
      '"a"',
      'application/x+json',
    ],
  ])('%s', async (_, body, headers, expected, type) => {
    const { base, got } = await receiver((to) => to.end());
    await send({ url: base, headers, body }, { env: headers });
    expect([got[0]?.body, got[0]?.headers['content-type']]).toEqual([expected, type]);
  });

  it('without a body has neither length nor type', async () => {
    const { base, got } = await receiver((to) => to.end());
    await send({ method: 'GET', url: base });
    expect(got[0]?.headers).not.toHaveProperty('content-type');
    expect(got[0]?.headers).not.toHaveProperty('content-length');
  });

  it.each([
    ['a value of two lines', { 'X-A': 'a\r\nx-b: 1' }, /header "X-A" must be one line/],
    ['a name that Millrace sets', { Host: 'a' }, /header "Host" is set by Millrace/],
  ])('is not sent with %s', async (_, env, reason) => {
    const { base, got } = await receiver((to) => to.end());
    const task = taskOf({ url: base });
    const work = { ...task.work, headers: Object.keys(env) } as Task['work'];
    const outcome = await open.run({ ...task, env, work }, new Recorder(), never);
    expect(outcome).toMatchObject({ state: 'error', reason: expect.stringMatching(reason) as string });
    expect(got).toEqual([]);
  });
});

describe('the answer', () => {
  it.each([
    ['application/json', '{"id":7}', { id: 7 }],
    ['application/problem+json; charset=utf-8', '[1]', [1]],
    ['application/json', '{nonsense', '{nonsense'],
    ['text/plain', '{"id":7}', '{"id":7}'],
    ['text/plain', '', null],
  ])('of type %s with %j has the body %j', async (type, text, body) => {
    const { base } = await receiver((to) => to.writeHead(200, { 'content-type': type }).end(text));
    const { outcome } = await send({ url: base });
    expect(resultOf(outcome)).toMatchObject({ status: 200, body, headers: { 'content-type': type } });
  });

  it('of another status than 2xx is a failure with status and excerpt, and keeps its result', async () => {
    const { base } = await receiver((to) => to.writeHead(503).end(' try later '));
    const { outcome } = await send({ url: base });
    expect(outcome).toMatchObject({ state: 'failure', reason: 'the answer was 503 Service Unavailable: try later' });
    expect(resultOf(outcome)).toMatchObject({ status: 503, body: ' try later ' });
  });

  it('with an expected status is a success, and 200 is none if it is not expected', async () => {
    const { base } = await receiver((to, { url }) => to.writeHead(url === '/gone' ? 404 : 200).end());
    expect((await send({ url: `${base}/gone`, expect: [404] })).outcome.state).toBe('success');
    expect((await send({ url: base, expect: [404] })).outcome).toMatchObject({
      state: 'failure',
      reason: 'the answer was 200 OK',
    });
  });

  it('that redirects is not followed', async () => {
    const { base, got } = await receiver((to) => to.writeHead(302, { location: '/other' }).end());
    expect((await send({ url: base })).outcome).toMatchObject({ state: 'failure', reason: 'the answer was 302 Found' });
    expect(got).toHaveLength(1);
  });

  it('that is too long is not kept, and not read to its end', async () => {
    const { base } = await receiver((to) => {
      const write = (): void => {
        while (!to.destroyed && to.write('x'.repeat(65_536)));
      };
      to.on('drain', write);
      write();
    });
    const { outcome, log } = await send({ url: base });
    expect(outcome).toMatchObject({ state: 'success', unkept: `its result has more than ${maxResultBytes} bytes` });
    expect(log).toContain(`< more than ${maxResultBytes} bytes`);
  });

  it('to HEAD has no body, whatever its length says', async () => {
    const { base } = await receiver((to) => to.writeHead(200, { 'content-length': '10' }).end());
    expect(resultOf((await send({ method: 'HEAD', url: base })).outcome)).toMatchObject({ status: 200, body: null });
  });

  it('that ends too early is an error', async () => {
    const base = await listen(
      createNet((socket) => {
        socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'));
      }),
    );
    expect((await send({ url: base })).outcome).toMatchObject({
      state: 'error',
      reason: 'the connection ended within the answer, whose status was 200',
    });
  });
});

describe('errors', () => {
  it('a connection that is refused or broken is an error with the reason', async () => {
    const base = await listen(createNet((socket) => socket.destroy()));
    expect((await send({ url: base })).outcome).toMatchObject({
      state: 'error',
      reason: expect.stringMatching(/^the request failed: .*(ECONNRESET|EPIPE|socket hang up)/) as string,
    });
    for (const close of closing.splice(0)) close();
    expect((await send({ url: base })).outcome).toMatchObject({
      state: 'error',
      reason: expect.stringContaining('ECONNREFUSED') as string,
    });
  });

  it('a request that does not end is cut when the task is killed', async () => {
    const control = new AbortController();
    const { base } = await receiver(() => control.abort('timeout'));
    const outcome = await open.run(taskOf({ url: base }), new Recorder(), control.signal);
    expect(outcome).toMatchObject({ state: 'failure', reason: 'it was stopped before its answer came' });
  });
});

describe('addresses', () => {
  const strict = httpRuntime({ allowHttp: false, allowed: parseRanges([], 'MILLRACE_HTTP') });

  it.each([
    ['https://127.0.0.1/', /127\.0\.0\.1 is refused \(loopback\)/],
    ['https://169.254.169.254/latest/meta-data', /169\.254\.169\.254 is refused \(link-local\)/],
    ['https://localhost/', /localhost is refused \(loopback\)/],
    ['http://8.8.8.8/', /set MILLRACE_HTTP_ALLOW_HTTP=true/],
  ])('%s is refused without a request', async (url, reason) => {
    const { outcome } = await send({ url }, { runtime: strict });
    expect(outcome).toMatchObject({ state: 'error', reason: expect.stringMatching(reason) as string });
  });

  it.each(['file:///etc/passwd', 'nonsense', 'https://u:p@8.8.8.8/'])('the url %s is refused', async (url) => {
    const work = { ...taskOf({ url: 'https://a.test/' }).work, url } as Task['work'];
    const outcome = await strict.run(makeTask(work), new Recorder(), never);
    expect(outcome).toMatchObject({ state: 'error', reason: expect.stringMatching(/^its url must/) as string });
  });
});

it('the log has the heads of request and answer, without stash values, credentials, cookies and the query', async () => {
  const { base } = await receiver((to) => to.writeHead(200, { 'set-cookie': 'sid=s3', 'x-trace': 't1' }).end('body'));
  const env = { 'X-Plain': 'shown', 'X-Stashed': 's1', Authorization: 's2' };
  const field = { url: `${base}/path?key=s4`, headers: env, body: { s: 's5' } };
  const { log, task } = await send(field, { env, secrets: ['X-Stashed'] });
  expect(log).toMatch(/^> POST http:\/\/127\.0\.0\.1:\d+\/path\?…\n/);
  for (const line of ['> X-Plain: shown', '> X-Stashed: ***', '> Authorization: ***', '> 10 bytes', '< 200 OK'])
    expect(log).toContain(`${line}\n`);
  for (const line of ['< set-cookie: ***', '< x-trace: t1', `> idempotency-key: ${task.facts.run}`])
    expect(log).toContain(`${line}\n`);
  expect(log).toMatch(/< 4 bytes in \d+ ms\n$/);
  expect(log).not.toMatch(/s[1-5]\b/);
});
