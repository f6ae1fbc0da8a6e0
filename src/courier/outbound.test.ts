/** Outbound HTTP against real receivers: what they answer, how they fail, and where their names lead. */
import { once } from 'node:events';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createNet, type Server, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeAuthority, type TestAuthority } from '../../test/harness/certificates.ts';
import { textWith } from '../../test/harness/expected.ts';
import { until } from '../../test/harness/until.ts';
import type { OutboundAnswer, OutboundRequest } from '../contract/bus.ts';
import { parseRanges } from '../outbound/addresses.ts';
import { type CourierOutbound, makeOutbound, type OutboundOptions } from './outbound.ts';
import { parseRetryAfter } from './retry-after.ts';

let authority: TestAuthority;
const closing: (() => unknown)[] = [];
beforeAll(async () => {
  authority = await makeAuthority();
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
});
afterAll(() => authority.close());

const never = new AbortController().signal;
const loopback = parseRanges(['127.0.0.0/8'], 'MILLRACE_BUS');

function outbound(more: Partial<OutboundOptions> = {}): CourierOutbound {
  const base = {
    allowHttp: true,
    allowed: loopback,
    maxConnections: 256,
    caFile: authority.file,
    now: () => Date.now(),
  };
  const made = makeOutbound({ ...base, lookup: async () => ['127.0.0.1'], ...more });
  closing.push(() => made.close());
  return made;
}

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
  });
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const receiver = (answer: (incoming: IncomingMessage, to: ServerResponse) => unknown): Promise<number> =>
  listen(createHttp((incoming, to) => void answer(incoming, to)));
const rawReceiver = (onConnection: (socket: Socket) => void): Promise<number> => listen(createNet(onConnection));

function request(url: string, more: Partial<OutboundRequest> = {}): OutboundRequest {
  const body = Buffer.from('[{"topic":"orders"}]');
  return { url, headers: { 'content-type': 'application/json' }, body, connectMs: 5_000, totalMs: 20_000, ...more };
}

const post = (url: string, more: Partial<OutboundRequest> = {}, by = outbound()): Promise<OutboundAnswer> =>
  by.post(request(url, more), never);

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

describe('answers', () => {
  it('a receiver gets the body, the headers and its own host name, and 2xx is an answer', async () => {
    const got: unknown[] = [];
    const port = await receiver(async (incoming, answer) => {
      got.push([
        incoming.method,
        incoming.url,
        incoming.headers.host,
        incoming.headers['content-type'],
        await bodyOf(incoming),
      ]);
      answer.writeHead(204).end();
    });
    expect(await post(`http://hooks.test:${port}/a?b=c`)).toMatchObject({ status: 204, retryAfterMs: null });
    expect(got).toEqual([['POST', '/a?b=c', `hooks.test:${port}`, 'application/json', '[{"topic":"orders"}]']]);
  });

  it('a failure carries its text and its Retry-After', async () => {
    const port = await receiver((_, answer) => answer.writeHead(503, { 'retry-after': '7' }).end('later\0!'));
    expect(await post(`http://hooks.test:${port}/`)).toMatchObject({
      status: 503,
      retryAfterMs: 7_000,
      excerpt: 'later\uFFFD!',
    });
  });

  it('a redirect is the answer: nobody calls the address that it names', async () => {
    const location = 'http://169.254.169.254/latest/meta-data';
    const port = await receiver((_, answer) => answer.writeHead(302, { location }).end());
    expect(await post(`http://hooks.test:${port}/`)).toMatchObject({ status: 302 });
  });

  it.each([
    [200, 'status'],
    [500, 'status'],
  ])('of an answer of 1 GB with status %i only the beginning is read', async (status) => {
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024, 'x');
    let closed = false;
    const port = await receiver((_, answer) => {
      answer.writeHead(status, { 'content-length': String(2 ** 30) });
      const more = (): void => {
        while (!answer.destroyed && sent < 2 ** 30) {
          sent += chunk.length;
          if (!answer.write(chunk)) return void answer.once('drain', more);
        }
      };
      answer.once('close', () => (closed = true));
      more();
    });
    const answer = await post(`http://hooks.test:${port}/`);
    expect(answer).toMatchObject({ status });
    await until('the receiver is cut off', () => closed || undefined);
    expect(sent).toBeLessThan(2 ** 26);
    if (status === 500) expect(answer).toMatchObject({ excerpt: 'x'.repeat(1_000) });
  });

  it('2xx is a delivery even if its body never ends or is reset', async () => {
    const port = await receiver((incoming, answer) => {
      answer.writeHead(200).write('some');
      if (incoming.url === '/reset') setImmediate(() => answer.socket?.resetAndDestroy());
    });
    const by = outbound();
    expect(await post(`http://hooks.test:${port}/hang`, {}, by)).toMatchObject({ status: 200 });
    expect(await post(`http://hooks.test:${port}/reset`, {}, by)).toMatchObject({ status: 200 });
  });

  it('2xx and failures keep their status, whatever follows the headers', async () => {
    const answers = [
      ['200 OK\r\nContent-Length: 0\r\n\r\nnonsense', 200],
      ['200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 200],
      ['500 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 500],
      ['500 X\r\nContent-Length: 0\r\n\r\nHTTP/1.1 204 X\r\n\r\n', 500],
    ] as const;
    for (const [text, status] of answers) {
      const port = await rawReceiver((socket) => socket.once('data', () => socket.write(`HTTP/1.1 ${text}`)));
      expect(await post(`http://hooks.test:${port}/`)).toMatchObject({ status });
    }
  });

  it('an answer that upgrades the connection is a failure at once', async () => {
    const text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n';
    const port = await rawReceiver((socket) => socket.once('data', () => socket.write(text)));
    expect(await post(`http://hooks.test:${port}/`)).toMatchObject({ code: 'reset', detail: textWith('upgrade') });
  });

  it('proxies in the environment are not used', async () => {
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    const port = await receiver((_, answer) => answer.writeHead(204).end());
    for (const name of names) vi.stubEnv(name, name.startsWith('NODE') ? '1' : 'http://127.0.0.1:9');
    closing.push(() => vi.unstubAllEnvs());
    expect(await post(`http://hooks.test:${port}/`)).toMatchObject({ status: 204 });
  });

  it('a failure whose body never ends keeps its status', async () => {
    const port = await receiver((_, answer) => void answer.writeHead(500).write('some'));
    expect(await post(`http://hooks.test:${port}/`, { totalMs: 200 })).toMatchObject({ status: 500 });
  });

  it.each([
    ['120', 120_000],
    ['0', 0],
    ['1.5', 1_500],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['soon', null],
    ['-1', null],
    ['1e9', null],
    ['2026', 2_026_000],
    [undefined, null],
  ])('Retry-After %s means %s ms', (text, expected) => {
    expect(parseRetryAfter(text, Date.parse('2026-01-01T00:00:00Z'))).toBe(expected);
  });
});

describe('failures', () => {
  it('a receiver that hangs is a timeout', async () => {
    const port = await receiver(() => {});
    expect(await post(`http://hooks.test:${port}/`, { totalMs: 100 })).toMatchObject({ code: 'timeout' });
  });

  it('a receiver that drips its headers is cut off by the total time', async () => {
    let closed = false;
    const port = await rawReceiver((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => socket.write(`x-${performance.now()}: y\r\n`), 20);
      socket.once('close', () => {
        clearInterval(drip);
        closed = true;
      });
    });
    expect(await post(`http://hooks.test:${port}/`, { totalMs: 300 })).toMatchObject({ code: 'timeout' });
    await until('the connection is closed', () => closed || undefined);
  });

  it('a receiver that resets or answers nonsense is a reset', async () => {
    const resets = await rawReceiver((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await post(`http://hooks.test:${resets}/`)).toMatchObject({ code: 'reset' });
    const talks = await rawReceiver((socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
    expect(await post(`http://hooks.test:${talks}/`)).toMatchObject({ code: 'reset' });
  });

  it('a port without a listener is a failure to connect, and so is a silent handshake of TLS a failure of TLS', async () => {
    const port = await receiver(() => {});
    for (const close of closing.splice(0)) close();
    expect(await post(`http://hooks.test:${port}/`)).toMatchObject({ code: 'connect' });
    const silent = await rawReceiver(() => {});
    expect(await post(`https://hooks.test:${silent}/`, { connectMs: 100 })).toMatchObject({ code: 'tls' });
    const plain = await receiver((_, answer) => answer.end());
    expect(await post(`https://hooks.test:${plain}/`)).toMatchObject({ code: 'tls' });
  });

  it('a name that cannot be resolved, and a resolver that hangs, are faults of DNS', async () => {
    const failing = outbound({
      lookup: async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })),
    });
    expect(await post('http://hooks.test/', {}, failing)).toMatchObject({ code: 'dns' });
    const hanging = outbound({ lookup: () => new Promise(() => {}) });
    expect(await post('http://hooks.test/', { connectMs: 50 }, hanging)).toMatchObject({ code: 'dns' });
  });

  it('a caller who aborts gets its reason, also while the request waits for a slot', async () => {
    const port = await receiver(() => {});
    const by = outbound({ maxConnections: 1 });
    const [first, second] = [new AbortController(), new AbortController()];
    const posts = [first, second].map(({ signal }) => by.post(request(`http://hooks.test:${port}/`), signal));
    second.abort(new Error('stop 2'));
    first.abort(new Error('stop 1'));
    expect(await Promise.allSettled(posts)).toMatchObject([
      { status: 'rejected', reason: { message: 'stop 1' } },
      { status: 'rejected', reason: { message: 'stop 2' } },
    ]);
  });
});

describe('addresses', () => {
  it('one refused address refuses the name, and nothing is connected', async () => {
    let connections = 0;
    const port = await rawReceiver(() => (connections += 1));
    const by = outbound({ lookup: async () => ['127.0.0.1', '10.0.0.1'] });
    expect(await post(`http://hooks.test:${port}/`, {}, by)).toMatchObject({ code: 'refused_address' });
    expect(connections).toBe(0);
  });

  it('a name that moves to a refused address is refused, although a connection to its former address is kept', async () => {
    const port = await receiver((_, answer) => answer.end());
    let address = '127.0.0.1';
    const by = outbound({ lookup: async () => [address], namesFreshMs: 0 });
    const url = `http://rebinding.test:${port}/`;
    expect(await post(url, {}, by)).toMatchObject({ status: 200 });
    address = '10.0.0.1';
    expect(await post(url, {}, by)).toMatchObject({ code: 'refused_address' });
  });

  it('the checked address is dialled: the resolver is not asked a second time', async () => {
    const port = await receiver((_, answer) => answer.end());
    let calls = 0;
    const lookup = async (): Promise<string[]> => (++calls === 1 ? ['127.0.0.1'] : ['10.0.0.1']);
    expect(await post(`http://rebinding.test:${port}/`, {}, outbound({ lookup }))).toMatchObject({ status: 200 });
    expect(calls).toBe(1);
  });

  it('the next address is tried if the first has no listener', async () => {
    const port = await listen(
      createHttp((_, answer) => void answer.end()),
      '127.0.0.2',
    );
    const by = outbound({ lookup: async () => ['127.0.0.1', '127.0.0.2'] });
    expect(await post(`http://hooks.test:${port}/`, {}, by)).toMatchObject({ status: 200 });
  });
});

describe('connections', () => {
  const countConnections = async (answer: (incoming: IncomingMessage, to: ServerResponse) => void) => {
    const peers: string[] = [];
    const server = createHttp((incoming, to) => {
      incoming.resume();
      answer(incoming, to);
    });
    server.on('connection', (socket) => peers.push(socket.localAddress ?? ''));
    const port = await listen(server, '0.0.0.0');
    return { port, peers };
  };

  it('a connection is kept for the next request to the same address, and not for another address', async () => {
    const { port, peers } = await countConnections((_, to) => void to.end('ok'));
    const by = outbound({ lookup: async (name) => [name === 'a.test' ? '127.0.0.1' : '127.0.0.2'] });
    for (let i = 0; i < 3; i++) expect(await post(`http://a.test:${port}/`, {}, by)).toMatchObject({ status: 200 });
    expect(peers).toEqual(['127.0.0.1']);
    await post(`http://b.test:${port}/`, {}, by);
    expect(peers).toEqual(['127.0.0.1', '127.0.0.2']);
  });

  it('a connection that serves many requests one after another gathers no listeners', async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void =>
      void (message.includes('close listeners') && warnings.push(message));
    process.on('warning', onWarning);
    closing.push(() => process.off('warning', onWarning));
    const peers = new Set<number | undefined>();
    const port = await receiver((incoming, answer) => {
      peers.add(incoming.socket.remotePort);
      answer.writeHead(204).end();
    });
    const by = outbound();
    for (let i = 0; i < 100; i++) await post(`http://hooks.test:${port}/`, {}, by);
    expect(peers.size).toBeLessThan(5);
    expect(warnings).toEqual([]);
  });

  it('a request on a kept connection that the receiver closes is repeated on a new one', async () => {
    let requests = 0;
    const { port, peers } = await countConnections((incoming, to) => {
      requests += 1;
      if (requests === 2) incoming.socket.resetAndDestroy();
      else to.end('ok');
    });
    const by = outbound();
    expect(await post(`http://a.test:${port}/`, {}, by)).toMatchObject({ status: 200 });
    await until('the connection is kept', () => peers.length === 1 || undefined);
    expect(await post(`http://a.test:${port}/`, {}, by)).toMatchObject({ status: 200 });
    expect([requests, peers.length]).toEqual([3, 2]);
  });

  it('other hosts are served while one host hangs with more requests than it may have connections', async () => {
    const hanging = await receiver(() => {});
    let served = 0;
    const port = await receiver((_, answer) => {
      served += 1;
      answer.end();
    });
    const by = outbound({ maxConnections: 16, maxPerHost: 64 });
    const abort = new AbortController();
    const stuck = Array.from({ length: 100 }, () =>
      by.post(request(`http://hangs.test:${hanging}/`), abort.signal).catch(() => undefined),
    );
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => post(`http://h${i % 10}.test:${port}/`, {}, by)),
    );
    expect(answers.every((answer) => 'status' in answer && answer.status === 200)).toBe(true);
    expect(served).toBe(50);
    abort.abort();
    await Promise.all(stuck);
  });
});

describe('TLS', () => {
  async function secureReceiver(names: readonly string[], selfSigned = false) {
    const certificate = await (selfSigned ? authority.selfSigned(names) : authority.sign(names));
    const serverNames: unknown[] = [];
    const server = createHttps(certificate, (incoming, answer) => {
      serverNames.push((incoming.socket as TLSSocket & { servername?: string | false }).servername);
      answer.end('ok');
    });
    return { port: await listen(server), serverNames };
  }

  it('a certificate of the private authority is accepted for its name, which is sent as SNI', async () => {
    const { port, serverNames } = await secureReceiver(['DNS:hooks.test']);
    const by = outbound();
    expect(await post(`https://hooks.test:${port}/`, {}, by)).toMatchObject({ status: 200 });
    expect(await post(`https://hooks.test.:${port}/`, {}, by)).toMatchObject({ status: 200 });
    expect(serverNames).toEqual(['hooks.test', 'hooks.test']);
  });

  it('a certificate for an address is accepted for that address', async () => {
    const { port } = await secureReceiver(['IP:127.0.0.1']);
    expect(await post(`https://127.0.0.1:${port}/`)).toMatchObject({ status: 200 });
  });

  it('a wrong name, a certificate that nobody signed and an unknown authority are faults of TLS', async () => {
    const { port: other } = await secureReceiver(['DNS:other.test']);
    const wrong = await post(`https://hooks.test:${other}/`);
    expect(wrong).toMatchObject({ code: 'tls', detail: expect.stringContaining('other.test') as string });
    const { port: unsigned } = await secureReceiver(['DNS:hooks.test'], true);
    expect(await post(`https://hooks.test:${unsigned}/`)).toMatchObject({ code: 'tls' });
    const { port: right } = await secureReceiver(['DNS:hooks.test']);
    const stranger = outbound({ caFile: undefined });
    expect(await post(`https://hooks.test:${right}/`, {}, stranger)).toMatchObject({ code: 'tls' });
  });

  it('a file of certificates that cannot be read is a fault of the configuration', () => {
    expect(() => outbound({ caFile: '/does/not/exist' })).toThrow('MILLRACE_BUS_CA');
  });
});
