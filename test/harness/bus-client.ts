/** Clients of a running product's bus: keys, publishing as a publisher does, and the typed calls. */
import { type Client, makeClient } from '../../src/http/client.ts';
import type { Endpoints, Product } from './product.ts';
import { until } from './until.ts';

export interface BusClient {
  readonly key: string;
  readonly call: Client<Endpoints>;
  /** Publishes one event, or an array of them, and returns their numbers after the commit. Throws if it is refused. */
  publish(topic: string, body: unknown): Promise<number[]>;
}

export interface BusClientOptions {
  readonly tenant?: string;
  readonly role?: 'client' | 'publisher' | 'subscriber';
}

export async function makeBusClient(
  product: Product,
  name: string,
  { tenant = 'default', role = 'client' }: BusClientOptions = {},
): Promise<BusClient> {
  const { key } = await product.call('POST /api/keys', { body: { name, role, tenant } });
  return busClientOf(product.url, key, tenant);
}

/** A client with a key that exists, for example after a restart at another address. */
export function busClientOf(url: string, key: string, tenant = 'default'): BusClient {
  const base = `${url}/t/${tenant}`;
  const headers = { authorization: basic(key) };
  return {
    key,
    call: makeClient<Endpoints>({ base, headers }),
    async publish(topic, body) {
      const answer = await fetch(`${base}/bus/topics/${topic}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`publishing was answered with ${answer.status}: ${text}`);
      return numbersIn(JSON.parse(text) as Posted);
    },
  };
}

export interface Request {
  /** Up to the path of the bus. */
  readonly base: string;
  readonly key: string;
  readonly topic: string;
  readonly events: readonly object[];
  /** Makes all attempts one. */
  readonly idempotencyKey: string;
}

const answerWithinMs = 10_000;
const patienceMs = 90_000;

/** Publishes until the answer is 2xx, as a careful publisher does. Returns the numbers. Throws if the request is refused. */
export async function publishSurely({ base, key, topic, events, idempotencyKey }: Request): Promise<number[]> {
  const headers = { authorization: basic(key), 'idempotency-key': idempotencyKey };
  const body = JSON.stringify(events);
  return until(
    'events are acknowledged',
    async () => {
      const signal = AbortSignal.timeout(answerWithinMs);
      const sent = fetch(`${base}/bus/topics/${topic}`, { method: 'POST', headers, body, signal });
      const answer = await sent.catch(() => undefined);
      if (answer === undefined || answer.status >= 500 || answer.status === 429) return undefined;
      const text = await answer.text();
      if (!answer.ok) throw new Error(`publishing was answered with ${answer.status}: ${text}`);
      return numbersIn(JSON.parse(text) as Posted);
    },
    patienceMs,
  );
}

type Posted = { readonly id: string } | { readonly first: string; readonly last: string };

function numbersIn(posted: Posted): number[] {
  if ('id' in posted) return [Number(posted.id)];
  const first = Number(posted.first);
  return Array.from({ length: Number(posted.last) - first + 1 }, (_, i) => first + i);
}

export function basic(user: string): string {
  return `Basic ${Buffer.from(`${user}:x`).toString('base64')}`;
}
