/** Errors that pg makes itself carry no code: the common ones are provoked from the real library. */
import { Client, Pool } from 'pg';
import { expect, it } from 'vitest';
import { serverAddress } from '../test/harness/postgres-server.ts';
import { isConnectionLoss } from './errors.ts';
import { clientConfig, onDatabase } from './postgres/address.ts';

const config = clientConfig(onDatabase(serverAddress(), 'postgres'), 'millrace tests');
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(() => undefined).catch((error: unknown) => error);

it('A statement on a client that was closed is a lost connection', async () => {
  const client = new Client(config);
  await client.connect();
  await client.end();
  const error = await errorOf(client.query('select 1'));
  expect([isConnectionLoss(error), error]).toEqual([true, expect.any(Error)]);
});

it('A statement whose connection breaks, and the next one on that client, are lost connections', async () => {
  const client = new Client(config);
  client.on('error', () => {});
  await client.connect();
  const sleeping = errorOf(client.query('select pg_sleep(60)'));
  (Reflect.get(client, 'connection') as { stream: { destroy(): void } }).stream.destroy();
  const errors = [await sleeping, await errorOf(client.query('select 1'))];
  expect(errors.map(isConnectionLoss)).toEqual([true, true]);
});

it('A pool that is closed, and one that has no connection left in time, are lost connections', async () => {
  const pool = new Pool({ ...config, max: 1 });
  const only = await pool.connect();
  pool.options.connectionTimeoutMillis = 20;
  const late = await errorOf(pool.connect());
  only.release();
  await pool.end();
  const closed = await errorOf(pool.connect());
  expect([late, closed].map(isConnectionLoss)).toEqual([true, true]);
});

it.each(['ENETUNREACH', 'EAI_AGAIN'])('A network that is not up yet (%s) is a lost connection', (code) => {
  expect(isConnectionLoss(Object.assign(new Error('connect or getaddrinfo'), { code }))).toBe(true);
});

it('A statement that the server rejects is no lost connection', async () => {
  const client = new Client(config);
  await client.connect();
  expect(isConnectionLoss(await errorOf(client.query('select nonsense')))).toBe(false);
  await client.end();
});
