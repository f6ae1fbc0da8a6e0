/** Requests that a client sends without waiting for answers. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openRaw, type RawConnection } from '../../../test/harness/raw-http.ts';
import { until } from '../../../test/harness/until.ts';
import { makeIncoming } from './incoming-message.ts';
import { maxWaiting, oneAtATime } from './pipelining.ts';

let server: Server;
let client: RawConnection;
/** Paths in the order in which they were handled, and the responses that are still open. */
let handled: string[];
let open: ServerResponse[];
let answersAtOnce: boolean;
/** How often `isFull` was called for a parsed request: up to three times each. */
let parsed: number;

beforeEach(async () => {
  handled = [];
  open = [];
  answersAtOnce = false;
  parsed = 0;
  const { listener, isFull } = oneAtATime((request, response) => {
    handled.push(request.url ?? '');
    if (answersAtOnce) setImmediate(() => response.end('x'));
    else open.push(response);
  });
  const incoming = makeIncoming(({ socket }) => {
    parsed++;
    return isFull(socket);
  });
  server = createServer({ IncomingMessage: incoming }, listener);
  server.on('upgrade', (_, socket: Socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(() => {
  client.socket.destroy();
  server.closeAllConnections();
  server.close();
});

const requests = (count: number): string =>
  Array.from({ length: count }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');

const isHandled = (path: string) => until(`${path} is handled`, () => handled.includes(path) || undefined);

it('pipelined requests are handled one after the other, and answered in order', async () => {
  client.send(requests(3));
  for (const path of ['/0', '/1', '/2']) {
    await isHandled(path);
    expect(handled.at(-1)).toBe(path);
    expect(open).toHaveLength(1);
    open.shift()?.end(`answer ${path}`);
  }
  await client.waitForAnswers(3);
  expect(client.text()).toMatch(/answer \/0[^]*answer \/1[^]*answer \/2/);
  expect(client.isClosed()).toBe(false);
});

it('requests of a client that has disconnected are not handled', async () => {
  client.send(requests(20));
  await isHandled('/0');
  const closed = new Promise((resolve) => open[0]?.once('close', resolve));
  client.socket.destroy();
  await closed;
  open[0]?.end();
  // the request of another connection is handled after any remaining effects of the lost one
  const other = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  other.send('GET /other HTTP/1.1\r\nHost: x\r\n\r\n');
  await isHandled('/other');
  other.socket.destroy();
  expect(handled).toEqual(['/0', '/other']);
});

it('a client that sends thousands of requests at once is cut off, and causes the work of one request', async () => {
  client.send(requests(20_000));
  await until('the connection is cut', () => client.isClosed() || undefined);
  expect(handled).toEqual(['/0']);
  expect(parsed).toBeLessThanOrEqual(3 * (maxWaiting + 2));
});

it('a client that sends a hundred requests at once gets a hundred answers', async () => {
  answersAtOnce = true;
  client.send(requests(maxWaiting));
  await client.waitForAnswers(maxWaiting);
  expect(client.answers()).toBe(maxWaiting);
});

it('a body that was sent along with its request is read when its turn comes', async () => {
  client.send(`${requests(1)}POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`);
  await isHandled('/0');
  open.shift()?.end();
  await isHandled('/body');
  let body = '';
  open[0]?.req.on('data', (chunk: Buffer) => (body += chunk.toString()));
  await until('the body is there', () => body === 'hello' || undefined);
});
