/**
 * The listening socket: HTTP or HTTPS, with the WebSocket of logs.
 *
 * 1. Limits apply to each client: the time for the TLS handshake, to send headers and body, and the number of waiting requests
 *    on a connection. TLS handshakes are limited in number, too (`handshakes.ts`).
 * 2. Only a WebSocket handshake for a log is an upgrade. Any other `Upgrade` header (such as `h2c`) is ignored, as HTTP requires.
 * 3. `stop` rejects new requests and ends idle connections; open streams get half a second.
 */
import { readFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { getRequestListener } from '@hono/node-server';
import { MillraceError } from '../../errors.ts';
import type { Service } from '../../kernel/service.ts';
import type { PublishRoute } from '../bus/publish-route.ts';
import type { Gateway } from './gateway.ts';
import { Handshakes } from './handshakes.ts';
import { makeIncoming } from './incoming-message.ts';
import { isLogSocket, type LogSocket, makeLogSocket } from './log-socket.ts';
import { oneAtATime } from './pipelining.ts';

export interface ListenerOptions {
  readonly gateway: Gateway;
  /** Answers requests; default: the gateway's own function. */
  readonly fetch?: Gateway['fetch'];
  /** Comes before `fetch`. */
  readonly publish?: PublishRoute;
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** The variable that sets the port. */
  readonly setting?: string;
  readonly handshakeMs?: number;
}

export interface Listener extends Service {
  /** The URL that it listens on. Valid once it has started. */
  readonly url: () => string;
}

const listenerTimes = {
  /** How long an idle connection stays open. Longer than the 60 s of common proxies, which reuse connections. */
  keepAliveTimeout: 65_000,
  /** The maximum time from the connection, or the last answer, to the end of the headers. */
  headersTimeout: 15_000,
  /** The same to the end of the body. 4 MiB at 70 KB/s take this long. */
  requestTimeout: 60_000,
  /** The interval at which the two previous limits are checked. */
  connectionsCheckingInterval: 5_000,
};

/** A client of HTTP/1.0 that names its version in the handshake is refused unless it is listed. */
const ALPNProtocols = ['http/1.1', 'http/1.0'];
/** The maximum time from a connection to the end of its TLS handshake. Node's default is two minutes. */
const usualHandshakeMs = 10_000;

export function makeListener(options: ListenerOptions): Listener {
  let server: Server | undefined;
  let handshakes: Handshakes | undefined;
  const logSocket = makeLogSocket(options.gateway);
  const url = (): string => {
    const { port } = (server?.address() ?? { port: options.port }) as AddressInfo;
    return `${options.tls ? 'https' : 'http'}://${hostInUrl(options.host)}:${port}`;
  };
  return {
    name: 'listener',
    url,
    async start() {
      if (server) return;
      const made = await createServer(options, logSocket);
      handshakes = options.tls && limitHandshakes(made, options.handshakeMs);
      await listen(made, options);
      server = made;
    },
    async stop() {
      const running = server;
      server = undefined;
      if (running === undefined) return;
      const closed = new Promise<void>((resolve) => running.close(() => resolve()));
      running.closeIdleConnections();
      handshakes?.close();
      logSocket.close();
      // followed streams never end by themselves
      const timer = setTimeout(() => running.closeAllConnections(), 500);
      await closed;
      clearTimeout(timer);
    },
  };
}

async function createServer(
  {
    gateway,
    fetch = (request, remote) => gateway.fetch(request, remote),
    publish,
    tls,
    handshakeMs = usualHandshakeMs,
  }: ListenerOptions,
  logSocket: LogSocket,
): Promise<Server> {
  const handle = getRequestListener((request, { incoming }) => fetch(request, incoming.socket.remoteAddress ?? null), {
    overrideGlobalObjects: false,
  });
  const { listener, isFull } = oneAtATime((request, response) => {
    if (publish?.(request, response) !== true) void handle(request, response);
  });
  const options: ServerOptions = {
    ...listenerTimes,
    IncomingMessage: makeIncoming(
      (request, asksForUpgrade) => (asksForUpgrade && isLogSocket(request)) || isFull(request.socket),
    ),
  };
  const server = tls
    ? createHttpsServer({ ...options, ...(await readTls(tls)), ALPNProtocols, handshakeTimeout: handshakeMs }, listener)
    : createHttpServer(options, listener);
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (isFull(socket)) socket.destroy();
    else logSocket.upgrade(request, socket, head);
  });
  // a client's broken handshake, or too few file descriptors, must not end the server
  server.on('error', () => {});
  return server;
}

/** Connections come to the server's own listener when their handshake may begin. */
function limitHandshakes(server: Server, waitMs = usualHandshakeMs): Handshakes {
  const listeners = server.listeners('connection');
  const handshakes = new Handshakes((socket) => listeners.forEach((accept) => accept.call(server, socket)), { waitMs });
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => handshakes.add(socket));
  server.on('secureConnection', (socket: TLSSocket) => handshakes.succeed(socket));
  return handshakes;
}

async function readTls({ cert, key }: NonNullable<ListenerOptions['tls']>): Promise<{ cert: Buffer; key: Buffer }> {
  return { cert: await readFile(cert), key: await readFile(key) };
}

async function listen(server: Server, { host, port, setting = 'MILLRACE_PORT' }: ListenerOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE';
      reject(
        taken
          ? new MillraceError('already_running', `port ${port} on ${host} is taken; set ${setting} to another`, {
              cause: error,
            })
          : error,
      );
    });
    server.listen(port, host, () => resolve());
  });
}

/** A wildcard address is replaced by loopback. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
