/**
 * A process that receives deliveries, of any number of subscribers: each has a path of its own. It counts events, each batch once,
 * and can hang or drip like a sick receiver.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowNs } from './events.ts';

/** `hang`: never answers. `drip`: answers one byte a second, without an end to its headers. */
export type Behaviour = 'answer' | 'hang' | 'drip';

interface Inbox {
  events: number;
  lastNs: bigint;
  readonly batches: Set<string>;
  /** Milliseconds from the time inside each event to its receipt; only of events that have one. */
  latencies: number[];
  behaviour: Behaviour;
}

const mark = Buffer.from('{"topic":"');
const sentAt = /"sent":"(\d{2,})"/g;

export function makeReceiver() {
  const inboxes = new Map<string, Inbox>();
  const inboxOf = (path: string): Inbox => {
    const known = inboxes.get(path) ?? {
      events: 0,
      lastNs: 0n,
      batches: new Set(),
      latencies: [],
      behaviour: 'answer',
    };
    inboxes.set(path, known);
    return known;
  };
  return {
    /** Returns the URL; subscribers are paths below it. */
    async listen(): Promise<string> {
      const server = createServer((request, response) => receive(inboxOf(request.url ?? ''), request, response));
      server.listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },

    /** Waits until that many events have arrived since the last call of `clear`. Returns when the last one came, on the shared clock. */
    async wait({ path, events, ms }: { path: string; events: number; ms: number }): Promise<string> {
      const inbox = inboxOf(path);
      for (const untilMs = performance.now() + ms; inbox.events < events; await sleep(2))
        if (performance.now() > untilMs) throw new Error(`${path} has received ${inbox.events} of ${events} events`);
      if (inbox.events > events) throw new Error(`${path} has received ${inbox.events} events instead of ${events}`);
      return `${inbox.lastNs}`;
    },

    /** Forgets what has arrived. Returns the latencies. */
    async clear({ path }: { path: string }): Promise<number[]> {
      const inbox = inboxOf(path);
      const { latencies } = inbox;
      inbox.events = 0;
      inbox.latencies = [];
      inbox.batches.clear();
      return latencies;
    },

    async behave({ path, behaviour }: { path: string; behaviour: Behaviour }): Promise<void> {
      inboxOf(path).behaviour = behaviour;
    },
  };
}

function receive(inbox: Inbox, request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (inbox.behaviour !== 'answer') return misbehave(inbox.behaviour, response);
    const body = chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
    record(inbox, String(request.headers['webhook-id']), body);
    response.writeHead(200, { 'content-length': 0 }).end();
  });
}

function record(inbox: Inbox, batch: string, body: Buffer): void {
  if (inbox.batches.has(batch)) return;
  inbox.batches.add(batch);
  for (let at = body.indexOf(mark); at !== -1; at = body.indexOf(mark, at + mark.length)) inbox.events += 1;
  inbox.lastNs = nowNs();
  if (!body.includes('"sent":"0"'))
    for (const [, ns = ''] of body.toString('latin1').matchAll(sentAt))
      inbox.latencies.push(Number(inbox.lastNs - BigInt(ns)) / 1e6);
}

function misbehave(behaviour: Behaviour, response: ServerResponse): void {
  if (behaviour === 'hang') return;
  response.socket?.write('HTTP/1.1 200 OK\r\nx-drip: ');
  const timer = setInterval(() => response.socket?.write('.'), 1_000);
  response.on('close', () => clearInterval(timer));
}
