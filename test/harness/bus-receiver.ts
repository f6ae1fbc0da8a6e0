/** A receiver of deliveries on this machine. It records what arrives, and answers as the test says. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from './certificates.ts';
import { until } from './until.ts';

export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly id: string;
  readonly body: string;
  readonly seqs: readonly number[];
  /** The status that was sent; undefined: none. */
  readonly status: number | undefined;
}

/** A status, an answer with headers, `hang`: no answer, `reset`: the connection ends, `lie`: 200, then the connection ends. */
export type Reply = number | { status: number; headers: Record<string, string> } | 'hang' | 'reset' | 'lie';

export interface BusReceiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** Decides the answer; the default is 204. */
  reply: (request: Omit<Received, 'status'>) => Reply | Promise<Reply>;
  /** Waits until so many batches were accepted on a path. */
  accepted(count: number, path?: string): Promise<Received[]>;
  /** Waits until these events were accepted on a path. */
  acceptedEvents(count: number, path?: string): Promise<number[]>;
  close(): Promise<void>;
}

/** With a certificate it speaks https. */
export async function makeBusReceiver(certificate?: Certificate): Promise<BusReceiver> {
  const received: Received[] = [];
  const isAccepted = ({ status }: Received): boolean => status !== undefined && status < 300;
  const on = (path: string | undefined): Received[] =>
    received.filter((request) => isAccepted(request) && (path === undefined || request.path === path));
  const listener: RequestListener = (request, response) => {
    void read(request).then(async (body) => {
      const elements = JSON.parse(body) as { id: string }[];
      const got = {
        path: request.url ?? '',
        headers: request.headers,
        id: String(request.headers['webhook-id']),
        body,
        seqs: elements.map(({ id }) => Number(id)),
      };
      const reply = await receiver.reply(got);
      received.push({ ...got, status: statusOf(reply) });
      answer(response, reply);
    });
  };
  const server = certificate === undefined ? createServer(listener) : createTlsServer(certificate, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: BusReceiver = {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    reply: () => 204,
    accepted: (count, path) =>
      until(`${count} batches were accepted`, () => (on(path).length >= count ? on(path) : undefined)),
    acceptedEvents: (count, path) =>
      until(`${count} events were accepted`, () => {
        const seqs = new Set(on(path).flatMap((request) => request.seqs));
        return seqs.size >= count ? [...seqs] : undefined;
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function statusOf(reply: Reply): number | undefined {
  if (typeof reply === 'number') return reply;
  if (typeof reply === 'object') return reply.status;
  return reply === 'lie' ? 200 : undefined;
}

function answer(response: ServerResponse, reply: Reply): void {
  if (reply === 'hang') return;
  if (reply === 'reset') {
    response.destroy();
    return;
  }
  if (reply === 'lie') {
    response.writeHead(200, { 'content-length': '100' });
    response.write('{', () => response.destroy());
    return;
  }
  const { status, headers } = typeof reply === 'number' ? { status: reply, headers: {} } : reply;
  response.writeHead(status, headers).end();
}
