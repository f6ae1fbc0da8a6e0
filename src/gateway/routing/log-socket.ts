/** Waterwheel's log WebSocket: `/api/task_runs/{id}/logs`. It sends the followed log of the engine as text frames, one per line. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { Slices } from '../../kernel/process/slices.ts';
import type { Gateway } from './gateway.ts';
import { isOwnOrigin } from './origin.ts';

const path = /^((?:\/t\/[^/]+)?\/api)\/task_runs\/([^/]+)\/logs$/;
/** With more unsent bytes the pump waits for the client, and pings get no answer. */
const maxBufferedBytes = 1 << 20;

/** Whether a request with an `Upgrade` header is the handshake of a log's WebSocket. */
export function isLogSocket({ method, url, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && matchPath(url) !== null;
}

function matchPath(url: string | undefined): RegExpExecArray | null {
  return URL.canParse(url ?? '', 'http://internal') ? path.exec(new URL(url ?? '', 'http://internal').pathname) : null;
}

export interface LogSocket {
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Ends all clients, because an HTTP server does not close upgraded sockets. */
  readonly close: () => void;
}

export function makeLogSocket(gateway: Gateway): LogSocket {
  const server = new WebSocketServer({ noServer: true, maxPayload: 1024, autoPong: false });
  return {
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy());
      void answer(gateway, server, { request, socket, head }).catch(() => socket.destroy());
    },
    close() {
      for (const client of server.clients) client.terminate();
    },
  };
}

interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

async function answer(gateway: Gateway, server: WebSocketServer, { request, socket, head }: Upgrade): Promise<void> {
  const match = matchPath(request.url);
  if (match === null) return refuse(socket, 404);
  if (isForeign(request)) return refuse(socket, 403);
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const followed = new Request(`http://internal${match[1]}/runs/${match[2]}/logs?follow=true`, {
    headers: headersOf(request),
    signal: gone.signal,
  });
  const response = await gateway.fetch(followed, request.socket.remoteAddress ?? null);
  if (!response.ok || response.body === null) return refuse(socket, response.status);
  const body: ReadableStream<Uint8Array> = response.body;
  if (socket.destroyed) return body.cancel();
  server.handleUpgrade(request, socket, head, (client) => {
    client.on('error', () => client.terminate());
    client.on('ping', (data: Buffer) => answerPing(client, data));
    void pump(body, client).catch(() => client.terminate());
  });
}

/** The library would answer every ping, and keep the answers in memory for a client that reads nothing. */
function answerPing(client: WebSocket, data: Buffer): void {
  if (client.bufferedAmount < maxBufferedBytes) client.pong(data);
}

/** Browsers let pages of other origins read a WebSocket, so one that is authenticated by a cookie is checked like a write. */
function isForeign({ headers }: IncomingMessage): boolean {
  if (headers.origin === undefined || headers.authorization !== undefined) return false;
  return !isOwnOrigin(headers.origin, headers.host ?? null);
}

/** The headers that identify the caller and its origin. */
function headersOf(request: IncomingMessage): Headers {
  const headers = new Headers();
  for (const name of ['authorization', 'cookie', 'host', 'origin'] as const) {
    const value = request.headers[name];
    if (value !== undefined) headers.set(name, value);
  }
  return headers;
}

function refuse(socket: Duplex, status: number): void {
  socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

/** Ends with the log, or as soon as the client disconnects. Otherwise a silent log would be followed for no client. */
async function pump(body: ReadableStream<Uint8Array>, client: WebSocket): Promise<void> {
  const reader = body.getReader();
  client.once('close', () => void reader.cancel().catch(() => {}));
  const decoder = new TextDecoder();
  // a megabyte of newlines makes a million frames
  const slices = new Slices();
  let begun = '';
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    // only new text is searched, because a line may be as long as the log
    const text = decoder.decode(read.value, { stream: true });
    let from = 0;
    for (let to = text.indexOf('\n'); to >= 0; to = text.indexOf('\n', from)) {
      await send(client, begun + text.slice(from, to));
      [begun, from] = ['', to + 1];
      if (slices.isOver) await slices.pause();
    }
    begun += text.slice(from);
  }
  if (begun !== '') await send(client, begun);
  client.close(1000);
}

async function send(client: WebSocket, line: string): Promise<void> {
  if (client.bufferedAmount < maxBufferedBytes) return client.send(line);
  await new Promise<void>((resolve) => client.send(line, () => resolve()));
}
