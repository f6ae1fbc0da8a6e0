/** The listening socket: HTTP or HTTPS, with the WebSocket of logs. Stops by refusing new requests and ending idle ones. */
import { readFile } from 'node:fs/promises';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { MillraceError } from '../errors.ts';
import type { Service } from '../kernel/service.ts';
import type { Gateway } from './gateway.ts';
import { type LogSocket, makeLogSocket } from './log-socket.ts';

export interface ListenerOptions {
  readonly gateway: Gateway;
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
}

export interface Listener extends Service {
  /** Where it listens; only once it has started. */
  readonly url: () => string;
}

export function makeListener(options: ListenerOptions): Listener {
  let server: Server | undefined;
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
      await listen(made, options);
      server = made;
    },
    async stop() {
      const running = server;
      server = undefined;
      if (running === undefined) return;
      const closed = new Promise<void>((resolve) => running.close(() => resolve()));
      running.closeIdleConnections();
      logSocket.close();
      // streams that are followed have no end of their own
      const timer = setTimeout(() => running.closeAllConnections(), 500);
      await closed;
      clearTimeout(timer);
    },
  };
}

async function createServer({ gateway, tls }: ListenerOptions, logSocket: LogSocket): Promise<Server> {
  const handle = getRequestListener(
    (request, { incoming }) => gateway.fetch(request, incoming.socket.remoteAddress ?? null),
    { overrideGlobalObjects: false },
  );
  const listener = (...args: Parameters<typeof handle>): void => void handle(...args);
  const server = tls
    ? createHttpsServer({ cert: await readFile(tls.cert), key: await readFile(tls.key) }, listener)
    : createHttpServer(listener);
  server.on('upgrade', logSocket.upgrade);
  // a client's broken handshake, or a want of file descriptors: not the end of serving
  server.on('error', () => {});
  server.keepAliveTimeout = 65_000;
  // a client that drips its headers in holds a connection for no longer than this
  server.headersTimeout = 15_000;
  return server;
}

async function listen(server: Server, { host, port }: ListenerOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE';
      reject(
        taken
          ? new MillraceError('already_running', `port ${port} on ${host} is taken; set MILLRACE_PORT to another`, {
              cause: error,
            })
          : error,
      );
    });
    server.listen(port, host, () => resolve());
  });
}

/** A wildcard address is reached from here by loopback. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
