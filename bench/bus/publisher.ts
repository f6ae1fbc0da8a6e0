/**
 * A process that publishes. It speaks HTTP over plain sockets with requests made beforehand, so that it takes as little of the
 * processor as possible from the server that is measured. Each connection has one request under way.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeBody, makeEvent, nowNs } from './events.ts';

export interface Target {
  readonly url: string;
  readonly topic: string;
  readonly key: string;
}

export interface Flood extends Target {
  /** Events of one request; 1: a single event, not an array. */
  readonly perPost: number;
  readonly connections: number;
  readonly ms: number;
}

type Extent = { readonly count: number } | { readonly ms: number };

export interface Flooded {
  /** Events that were acknowledged. */
  readonly events: number;
  readonly ms: number;
  /** When it began, in nanoseconds of the shared clock. */
  readonly startedNs: string;
}

export function makePublisher() {
  return {
    /** Publishes as fast as the server answers. */
    async flood(flood: Flood): Promise<Flooded> {
      const requests = Array.from({ length: 100 }, (_, i) =>
        renderRequest(flood, makeBody(i * flood.perPost, flood.perPost, flood.perPost > 1)),
      );
      const startedNs = nowNs();
      const startedMs = performance.now();
      const posts = await Promise.all(
        Array.from({ length: flood.connections }, (_, i) => floodOne(flood, requests, i, startedMs + flood.ms)),
      );
      const events = posts.reduce((sum, n) => sum + n, 0) * flood.perPost;
      return { events, ms: performance.now() - startedMs, startedNs: `${startedNs}` };
    },

    /**
     * Publishes single events, so many or for so long, each with the time when it was sent, and rests after each. Returns the
     * milliseconds of each call.
     */
    async trickle({ restMs, ...target }: Target & { restMs: number } & Extent): Promise<number[]> {
      const connection = await open(target);
      const times: number[] = [];
      const untilMs = 'ms' in target ? performance.now() + target.ms : Number.POSITIVE_INFINITY;
      const count = 'count' in target ? target.count : Number.POSITIVE_INFINITY;
      for (let i = 0; i < count && performance.now() < untilMs; i++) {
        const startedMs = performance.now();
        await connection.post(renderRequest(target, makeEvent(i, `${nowNs()}`)));
        times.push(performance.now() - startedMs);
        await sleep(restMs);
      }
      connection.close();
      return times;
    },
  };
}

async function floodOne(flood: Flood, requests: readonly Buffer[], offset: number, untilMs: number): Promise<number> {
  const connection = await open(flood);
  let posts = 0;
  for (; performance.now() < untilMs; posts++) {
    const request = requests[(offset * 7 + posts) % requests.length];
    if (request !== undefined) await connection.post(request);
  }
  connection.close();
  return posts;
}

function renderRequest({ url, topic, key }: Target, body: string): Buffer {
  const { host, pathname } = new URL(url);
  const head = [
    `POST ${pathname.replace(/\/$/, '')}/bus/topics/${topic} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}

interface Connection {
  /** Resolves with the answer's body; any status but 200 is an error. */
  post(request: Buffer): Promise<void>;
  close(): void;
}

async function open({ url }: Pick<Target, 'url'>): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return onSocket(socket);
}

function onSocket(socket: Socket): Connection {
  let received = '';
  let waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    const end = endOfAnswer(received);
    if (end === undefined || received.length < end) return;
    const answer = received;
    received = '';
    if (answer.startsWith('HTTP/1.1 200')) waiting?.resolve();
    else waiting?.reject(new Error(`not accepted: ${answer}`));
  });
  const fail = (error?: Error): void => waiting?.reject(error ?? new Error('the server closed the connection'));
  socket.on('error', fail).on('close', () => fail());
  return {
    post: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(request);
      }),
    close: () => void socket.destroy(),
  };
}

/** The length of an answer; undefined: its headers are not complete. */
function endOfAnswer(text: string): number | undefined {
  const headers = text.indexOf('\r\n\r\n');
  if (headers === -1) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  if (length !== undefined) return headers + 4 + Number(length);
  return text.endsWith('0\r\n\r\n') ? text.length : undefined;
}
