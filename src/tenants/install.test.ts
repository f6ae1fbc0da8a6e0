import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../../test/harness/fresh-database.ts';
import type { Engine } from '../contract/engine.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { clientConfig } from '../postgres/address.ts';
import type { Drained } from '../postgres/drained.ts';
import { guardVersion, setUp } from '../postgres/pool/pool.ts';
import { listPending } from '../../test/harness/list-pending.ts';
import { onConnection } from './drained-work.ts';
import { ensureInstalled, migrateTenant } from './install.ts';
import { look } from '../loader/inspect.ts';

let database: FreshDatabase;
const clients: Client[] = [];
beforeEach(async () => {
  database = await makeFreshDatabase();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => {})));
  await database.close();
});

const only = (...versions: string[]) => ({ has: async (version: string) => versions.includes(version) });
const seen = () => look(database.address, 100);
/** The same engine under another version's name. */
async function installedAt(version: string): Promise<void> {
  await migrateTenant(database.address, engine);
  const client = await connect();
  await client.query(`update millrace.installation set version = '${version}'`);
  await client.end();
}
async function connect(): Promise<Client> {
  const client = new Client(clientConfig(database.address, 'a test'));
  clients.push(client);
  client.on('error', () => {});
  await client.connect();
  return client;
}
async function engineConnection(version: string): Promise<Client> {
  const client = await connect();
  const rest = { schema: 'millrace', application: '', allowPooler: false } as const;
  await setUp(client, { address: database.address, ...rest, onOpen: guardVersion(version) });
  return client;
}
const alive = (client: Client): Promise<boolean> =>
  client.query('select 1').then(
    () => true,
    () => false,
  );

describe('migrating a tenant', () => {
  it('installs, tells the transaction before, and finds nothing to do the second time', async () => {
    const pending = await listPending(database.address, engine);
    expect(pending[0]).toBe('0001_event_log.sql');
    const told: Drained[] = [];
    const onBegin = async (who: Drained): Promise<void> => {
      told.push(who);
      expect(await seen()).toEqual({ kind: 'not_installed' });
    };
    expect(await migrateTenant(database.address, engine, { onBegin })).toEqual(pending);
    expect(told).toHaveLength(1);
    expect(await seen()).toEqual({ kind: 'installed', version: engineVersion });
    expect(await migrateTenant(database.address, engine)).toEqual([]);
    expect(await listPending(database.address, engine)).toEqual([]);
  });

  it('does not begin when nobody could be told', async () => {
    const onBegin = (): Promise<never> => Promise.reject(new Error('the control database is away'));
    const refusing = migrateTenant(database.address, engine, { onBegin });
    await expect(refusing).rejects.toThrow('the control database is away');
    expect(await seen()).toEqual({ kind: 'not_installed' });
  });

  it('leaves nothing when the engine’s migration fails', async () => {
    const failing: Engine = {
      ...engine,
      migrate: async (client) => {
        await engine.migrate(client);
        throw new Error('at the very end');
      },
    };
    await expect(migrateTenant(database.address, failing)).rejects.toThrow('at the very end');
    expect(await seen()).toEqual({ kind: 'not_installed' });
  });

  it('waits for half a minute at most for what somebody holds', async () => {
    const waits: string[] = [];
    const looking: Engine = {
      ...engine,
      migrate: async (client) => {
        const { rows } = await client.query<{ lock_timeout: string }>('show lock_timeout');
        waits.push(...rows.map((row) => row.lock_timeout));
        return engine.migrate(client);
      },
    };
    await migrateTenant(database.address, looking);
    expect(waits).toEqual(['30s']);
  });

  it('reminds those who came back before the lock was asked for', async () => {
    await migrateTenant(database.address, engine);
    const late: Client[] = [];
    let isTerminated = false;
    const onBegin = async (): Promise<void> => {
      const client = await engineConnection(engineVersion);
      late.push(client.on('error', () => (isTerminated = true)));
    };
    const remind = (): void => void late.pop()?.end();
    await migrateTenant(database.address, engine, { onBegin, remind });
    expect(late).toEqual([]);
    // those who stay are
    expect(isTerminated).toBe(false);
  });
});

it('a process that stands still in such a transaction, or whose machine is gone, does not keep the tenant', async () => {
  const settings = await onConnection(database.address, async (client) => {
    const { rows } = await client.query(`
      select name, reset_val <> setting as is_ours from pg_settings
       where name = 'idle_in_transaction_session_timeout' or (name like 'tcp_keepalives%' and inet_client_addr() is not null)`);
    return rows;
  });
  expect(settings.length).toBeGreaterThan(0);
  for (const each of settings) expect(each).toMatchObject({ is_ours: true });
});

describe('making sure that the default tenant can be served', () => {
  const lockMs = 10_000;

  it('installs it once, though ten start at once and some are at work before others have looked', async () => {
    const starting = Array.from({ length: 10 }, async () => {
      const applied = await ensureInstalled(database.address, engine, { engines: only(engineVersion), lockMs });
      return { applied, client: await engineConnection(engineVersion) };
    });
    const started = await Promise.all(starting);
    expect(started.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
    expect(await Promise.all(started.map(({ client }) => alive(client)))).toEqual(started.map(() => true));
  });

  it('is kept by nobody who is changing it where there is nothing to do, and for no longer than it may wait where there is', async () => {
    await installedAt(engineVersion);
    const other = new Client(clientConfig(database.address, 'a migration by hand'));
    await other.connect();
    await other.query('begin; select millrace.begin_migration()');
    const ensuring = { lockMs: 200, onUpgrade: () => {} };
    expect(await ensureInstalled(database.address, engine, { engines: only(engineVersion), ...ensuring })).toEqual([]);
    await other.query(`rollback`);
    await other.query(`update millrace.installation set version = '0.0.1'`);
    await other.query('begin; select millrace.begin_migration()');
    const refused = ensureInstalled(database.address, engine, { engines: only(engineVersion), ...ensuring });
    await expect(refused).rejects.toMatchObject({ code: '55P03' });
    await other.end();
  });

  it('brings it to this release where its own engine is not here and somebody is told, else leaves it', async () => {
    await installedAt('0.0.1');
    const here = only(engineVersion);
    expect(await ensureInstalled(database.address, engine, { engines: here, lockMs })).toEqual([]);
    expect(await seen()).toEqual({ kind: 'installed', version: '0.0.1' });
    const told: string[] = [];
    const onUpgrade = (from: string): number => told.push(from);
    await ensureInstalled(database.address, engine, { engines: here, lockMs, onUpgrade });
    await ensureInstalled(database.address, engine, { engines: here, lockMs, onUpgrade });
    expect(await seen()).toEqual({ kind: 'installed', version: engineVersion });
    expect(told).toEqual(['0.0.1']);
  });

  it.each([
    ['its own engine is here', '0.0.1', ['0.0.1', engineVersion]],
    ['it is ahead', '99.0.0', [engineVersion]],
  ])('leaves it alone where %s', async (_, version, have) => {
    await installedAt(version);
    const client = await engineConnection(version);
    const told: string[] = [];
    const onUpgrade = (from: string): number => told.push(from);
    expect(await ensureInstalled(database.address, engine, { engines: only(...have), lockMs, onUpgrade })).toEqual([]);
    expect(told).toEqual([]);
    expect(await seen()).toEqual({ kind: 'installed', version });
    expect(await alive(client)).toBe(true);
  });
});
