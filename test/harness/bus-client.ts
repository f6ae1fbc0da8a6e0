/** Clients of a running product's bus: keys, publishing as a publisher does, and the typed calls. */
import { type Client, makeClient } from '../../src/http/client.ts';
import type { Endpoints, Product } from './product.ts';

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

type Posted = { readonly id: string } | { readonly first: string; readonly last: string };

function numbersIn(posted: Posted): number[] {
  if ('id' in posted) return [Number(posted.id)];
  const first = Number(posted.first);
  return Array.from({ length: Number(posted.last) - first + 1 }, (_, i) => first + i);
}

export function basic(user: string): string {
  return `Basic ${Buffer.from(`${user}:x`).toString('base64')}`;
}
