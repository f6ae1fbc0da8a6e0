/** One connection that belongs to its opener, set up as a pool's are, and how to end one without a word. */
import { Client, type ClientBase } from 'pg';
import { clientConfig } from '../address.ts';
import { cut, type PoolOptions, setUp, typeParsers } from './pool.ts';

export interface ClientOptions extends Omit<PoolOptions, 'max' | 'onError' | 'idleMs' | 'budget'> {
  readonly connectMs: number;
  /** When it aborts, whatever it waits for is given up. */
  readonly signal: AbortSignal;
}

/** Its loss is told by the event `end`. */
export async function openClient(options: ClientOptions): Promise<Client> {
  const client = new Client({
    ...clientConfig(options.address, cut(options.application)),
    connectionTimeoutMillis: options.connectMs,
    types: typeParsers,
  });
  client.on('error', () => {});
  const giveUp = (): void => sever(client);
  options.signal.addEventListener('abort', giveUp, { once: true });
  try {
    options.signal.throwIfAborted();
    await client.connect();
    await setUp(client, options);
    return client;
  } catch (error) {
    sever(client);
    throw error;
  } finally {
    options.signal.removeEventListener('abort', giveUp);
  }
}

/** Ends a connection whatever is under way on it: from now on nothing of ours can pass over it. */
export function sever(client: ClientBase): void {
  const { stream } = Reflect.get(client, 'connection') as { stream: { destroy(): void } };
  stream.destroy();
}
