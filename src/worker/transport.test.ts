import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MillraceError } from '../errors.ts';
import { type Answer, inProcess, overNetwork, type Received } from './transport.ts';

const carry = overNetwork();
const never = new AbortController().signal;
const patience = { timeout: 10_000, interval: 5 };

let server: Server;
let url: URL;
let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void;
let sockets: Socket[];

beforeEach(async () => {
  sockets = [];
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(request, response, Buffer.concat(chunks).toString()));
  });
  server.on('connection', (socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/internal/claim`);
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const send = (body = {}, signal = never): Promise<Answer> => carry({ url, key: 'k', body }, signal);

it('a message is sent completely, with its key, and any answer is returned', async () => {
  answer = ({ method, headers, url: path }, response, body) => {
    response.writeHead(418).end(`${method} ${path} ${headers.authorization} ${headers['content-type']} ${body}`);
  };
  const body = { text: 'ä'.repeat(100_000) };
  const text = `POST /internal/claim Bearer k application/json ${JSON.stringify(body)}`;
  expect(await send(body)).toEqual({ status: 418, text });
});

it('a connection is reused', async () => {
  answer = (_, response) => response.end('ok');
  for (let i = 0; i < 5; i++) await send();
  expect(sockets).toHaveLength(1);
});

it('a message is sent again if its reused connection had just been closed', async () => {
  answer = (_, response) => response.end('ok');
  await send();
  answer = (request) => {
    answer = (_, response) => response.end('second');
    request.socket.resetAndDestroy();
  };
  expect(await send()).toEqual({ status: 200, text: 'second' });
  expect(sockets).toHaveLength(2);
});

it('a new connection that is closed is an error, without another attempt', async () => {
  let tries = 0;
  answer = (request) => {
    tries++;
    request.socket.resetAndDestroy();
  };
  await expect(send()).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(tries).toBe(1);
});

it('an answer that is cut off is an error', async () => {
  answer = (request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('half');
    setTimeout(() => request.socket.destroy(), 20);
  };
  await expect(send()).rejects.toThrow();
});

it('an answer before the end of the request, followed by a close, is returned', async () => {
  const early = createTcpServer((socket) => {
    socket.on('error', () => {}).pause();
    socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno');
    void answered.then(() => socket.resetAndDestroy());
  });
  early.listen(0, '127.0.0.1');
  await once(early, 'listening');
  const to = new URL(`http://127.0.0.1:${(early.address() as AddressInfo).port}/internal/report`);
  const answered = carry({ url: to, key: 'k', body: { text: 'x'.repeat(16_000_000) } }, never);
  expect(await answered).toEqual({ status: 401, text: 'no' });
  await new Promise((resolve) => early.close(resolve)); // waits until its connection is closed
  answer = (_, response) => response.end('ok');
  expect(await send()).toEqual({ status: 200, text: 'ok' });
});

it('a reused connection gets one listener only', async () => {
  answer = (_, response) => response.end('ok');
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  for (let i = 0; i < 20; i++) await send();
  process.off('warning', note);
  expect([sockets.length, warnings]).toEqual([1, []]);
});

it('an abort ends a message before and while it waits', async () => {
  answer = () => {};
  const control = new AbortController();
  const waiting = send({}, control.signal);
  await vi.waitFor(() => expect(sockets).toHaveLength(1), patience);
  control.abort();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  await expect(send({}, control.signal)).rejects.toMatchObject({ name: 'AbortError' });
});

it('a redirection is reported with its target, and not followed with the key', async () => {
  answer = (_, response) => response.writeHead(308, { location: 'https://elsewhere.example/' }).end();
  expect(await send()).toEqual({ status: 308, text: 'see https://elsewhere.example/' });
});

it('within a process, message and answer are passed as objects', async () => {
  const body = { a: 1 };
  const within = inProcess(async (path, message) => ({ path, message }));
  const answered = await within({ url, key: 'k', body }, never);
  expect(answered).toEqual({ made: { path: '/internal/claim', message: body } });
});

it('within a process, a rejection looks as over the network', async () => {
  const within = inProcess(() => Promise.reject(new MillraceError('tenant_unavailable', 'it is away')));
  const { status, text } = (await within({ url, key: 'k', body: {} }, never)) as Received;
  expect([status, JSON.parse(text)]).toEqual([
    503,
    expect.objectContaining({ code: 'tenant_unavailable', detail: 'it is away' }),
  ]);
});

it('within a process, an abort ends a message even if the gateway ignores it', async () => {
  const within = inProcess(() => new Promise(() => {}));
  const control = new AbortController();
  const waiting = within({ url, key: 'k', body: {} }, control.signal);
  control.abort();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  await expect(within({ url, key: 'k', body: {} }, control.signal)).rejects.toMatchObject({ name: 'AbortError' });
});
