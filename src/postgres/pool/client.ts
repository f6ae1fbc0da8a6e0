/** A single connection that its opener owns, set up like those of a pool, and how to cut a connection. */
import { Client, type ClientBase } from 'pg';
import { clientConfig } from '../address.ts';
import { cut, type PoolOptions, setUp, typeParsers } from './pool.ts';

export interface ClientOptions extends Omit<PoolOptions, 'max' | 'onError' | 'idleMs' | 'budget'> {
  readonly connectMs: number;
  /** Aborts the opening. */
  readonly signal: AbortSignal;
}

/** The client emits `end` when the connection is lost. */
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

/** Cuts a connection, even during a statement. From now on we can send nothing over it. */
export function sever(client: ClientBase): void {
  const { stream } = Reflect.get(client, 'connection') as { stream: { destroy(): void } };
  stream.destroy();
}
