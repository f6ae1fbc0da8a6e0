import { createServer, connect, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { textWith } from '../../../test/harness/expected.ts';
import { type FreshDatabase, makeInstalledTenant } from '../../../test/harness/fresh-database.ts';
import { until } from '../../../test/harness/until.ts';
import { onClient, onPool, sql } from '../../kernel/sql.ts';
import type { Address } from '../address.ts';
import { withClient } from '../databases.ts';
import { locks } from '../locks.ts';
import { guardVersion, openPool, type PoolOptions, VersionMismatch } from './pool.ts';

let tenant: FreshDatabase;
const pools: Pool[] = [];
beforeEach(async () => {
  tenant = await makeInstalledTenant('1');
});
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await tenant.close();
});

function open(engine: string, more: Partial<PoolOptions> = {}): Pool {
  const rest = { schema: 'millrace', application: `engine ${engine}`, max: 3, allowPooler: false } as const;
  const pool = openPool({
    address: tenant.address,
    ...rest,
    onOpen: guardVersion(engine),
    onError: () => {},
    ...more,
  });
  pools.push(pool);
  return pool;
}

const drain = sql`${locks.drain[0]}::integer, ${locks.drain[1]}::integer`;
const waitsForDrain = (pool: Pool) => async (): Promise<true | undefined> => {
  const [waiting] = await onPool(pool).rows(sql`
    select 1 from pg_locks
     where locktype = 'advisory' and classid = ${locks.drain[0]} and objid = ${locks.drain[1]} and not granted
       and database = (select oid from pg_database where datname = current_database())`);
  return waiting === undefined ? undefined : true;
};

describe('a connection', () => {
  it('is set up before its first use: schema, UTC, big numbers as numbers', async () => {
    const db = onPool(open('1'));
    expect(
      await db.one(sql`select current_schema() as schema, current_setting('timezone') as zone, 2::bigint ^ 52 as n`),
    ).toEqual({
      schema: 'millrace',
      zone: 'UTC',
      n: 2 ** 52,
    });
    expect(await db.one(sql`select ${2 ** 52}::bigint as n`)).toEqual({ n: 2 ** 52 });
  });

  it('that is lost while nobody listens to it does not end the process, and the next is another', async () => {
    const pool = open('1');
    const client = await pool.connect();
    const ended = new Promise((resolve) => client.once('end', resolve));
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    await withClient(tenant.address, (other) => other.query('select pg_terminate_backend($1)', [rows[0]?.pid]));
    await ended;
    client.release();
    expect(await onPool(pool).one(sql`select 1 as x`)).toEqual({ x: 1 });
  });

  it('of an engine that is not the recorded one is closed, and says which is', async () => {
    const pool = open('2');
    const failure: unknown = await onPool(pool)
      .one(sql`select 1`)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(VersionMismatch);
    expect(failure).toMatchObject({ recorded: '1' });
    await until('no connection of it is left', async () => {
      const left = await onPool(open('1')).rows(sql`
        select 1 from pg_stat_activity where application_name = 'engine 2' and datname = current_database()`);
      return left.length === 0 || undefined;
    });
  });

  it('waits while a migration holds drain, and then sees what it recorded (I6)', async () => {
    const watching = open('watcher', { onOpen: async () => {} });
    const [old, successor] = [open('1'), open('2')];
    const outcomes = await withClient(tenant.address, async (client) => {
      const db = onClient(client);
      await client.query('begin; set local search_path to millrace');
      await db.exec(sql`select pg_advisory_xact_lock(${drain})`);
      const asking = [old, successor].map((pool) =>
        onPool(pool)
          .one(sql`select 'in' as x`)
          .then(() => 'in', String),
      );
      await until('both wait', waitsForDrain(watching));
      await db.exec(sql`update installation set version = '2'`);
      await client.query('commit');
      return Promise.all(asking);
    });
    expect(outcomes).toEqual(['VersionMismatch: the tenant is at version 2', 'in']);
  });

  it('holds drain as long as it lives: a migration is granted when the last one is gone (I6)', async () => {
    const watching = open('watcher', { onOpen: async () => {} });
    const old = open('1');
    const clients = await Promise.all([old.connect(), old.connect()]);
    let done = false;
    const upgrading = withClient(tenant.address, async (client) => {
      await client.query('begin');
      await onClient(client).exec(sql`select pg_advisory_xact_lock(${drain})`);
      await client.query('commit');
      done = true;
    });
    await until('it waits', waitsForDrain(watching));
    clients[0]?.release(true);
    await until('it still waits for the other', waitsForDrain(watching));
    expect(done).toBe(false);
    clients[1]?.release(true);
    await upgrading;
  });
});

/** Stands between client and server and, as a pooler does, announces another backend than the one that answers. */
async function startPooler(behind: Address): Promise<{ address: Address; close(): void }> {
  const { searchParams, port } = new URL(behind.url);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const upstream = connect(`${searchParams.get('host')}/.s.PGSQL.${port}`);
    for (const end of [socket, upstream]) sockets.add(end.on('error', () => {}));
    socket.pipe(upstream);
    upstream.on('data', (chunk: Buffer) => {
      const at = chunk.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
      if (at >= 0) chunk.writeInt32BE(7, at + 5);
      socket.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(behind.url);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  url.searchParams.delete('host');
  return {
    address: { url: url.href, database: behind.database },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe('a connection through a pooler', () => {
  let pooler: Awaited<ReturnType<typeof startPooler>>;
  beforeAll(async () => {
    const any = await makeInstalledTenant('1');
    pooler = await startPooler(any.address);
    await any.close();
  });
  afterAll(() => pooler.close());

  const behind = (): Address => {
    const url = new URL(pooler.address.url);
    url.pathname = `/${tenant.address.database}`;
    return { url: url.href, database: tenant.address.database };
  };

  it('is refused with the variable to set', async () => {
    const asking = onPool(open('1', { address: behind() })).one(sql`select 1`);
    await expect(asking).rejects.toMatchObject({
      code: 'bad_configuration',
      message: textWith('MILLRACE_SESSION_POOLER=true'),
    });
  });

  it('is taken when it is said to pool by session', async () => {
    expect(await onPool(open('1', { address: behind(), allowPooler: true })).one(sql`select 1 as x`)).toEqual({ x: 1 });
  });
});
