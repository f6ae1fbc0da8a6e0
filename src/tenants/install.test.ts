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
/** Installs the engine, and records another version. */
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

describe('migration of a tenant', () => {
  it('a migration announces its transaction, installs, and finds nothing to do the second time', async () => {
    const pending = await listPending(database.address, engine);
    expect(pending[0]).toBe('0001_event_log.sql');
    const announced: Drained[] = [];
    const onBegin = async (transaction: Drained): Promise<void> => {
      announced.push(transaction);
      expect(await seen()).toEqual({ kind: 'not_installed' });
    };
    expect(await migrateTenant(database.address, engine, { onBegin })).toEqual(pending);
    expect(announced).toHaveLength(1);
    expect(await seen()).toEqual({ kind: 'installed', version: engineVersion });
    expect(await migrateTenant(database.address, engine)).toEqual([]);
    expect(await listPending(database.address, engine)).toEqual([]);
  });

  it('a migration does not begin if it cannot be announced', async () => {
    const onBegin = (): Promise<never> => Promise.reject(new Error('the control database is away'));
    const refusing = migrateTenant(database.address, engine, { onBegin });
    await expect(refusing).rejects.toThrow('the control database is away');
    expect(await seen()).toEqual({ kind: 'not_installed' });
  });

  it('a migration that fails leaves nothing', async () => {
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

  it('a migration waits at most 30 s for a lock', async () => {
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

  it('a migration reminds connections that came back before it requested the lock', async () => {
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
    // only connections that stay are terminated
    expect(isTerminated).toBe(false);
  });
});

it('a process that hangs in such a transaction, or whose machine is gone, does not block the tenant for ever', async () => {
  const settings = await onConnection(database.address, async (client) => {
    const { rows } = await client.query(`
      select name, reset_val <> setting as is_ours from pg_settings
       where name = 'idle_in_transaction_session_timeout' or (name like 'tcp_keepalives%' and inet_client_addr() is not null)`);
    return rows;
  });
  expect(settings.length).toBeGreaterThan(0);
  for (const each of settings) expect(each).toMatchObject({ is_ours: true });
});

describe('installation of the default tenant', () => {
  const lockMs = 10_000;

  it('ten processes that start at once install the default tenant once', async () => {
    const starting = Array.from({ length: 10 }, async () => {
      const applied = await ensureInstalled(database.address, engine, { engines: only(engineVersion), lockMs });
      return { applied, client: await engineConnection(engineVersion) };
    });
    const started = await Promise.all(starting);
    expect(started.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
    expect(await Promise.all(started.map(({ client }) => alive(client)))).toEqual(started.map(() => true));
  });

  it('a start with nothing to do does not wait for a migration; otherwise it waits at most `lockMs`', async () => {
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

  it('a start upgrades a default tenant without its own engine only if `onUpgrade` is given', async () => {
    await installedAt('0.0.1');
    const available = only(engineVersion);
    expect(await ensureInstalled(database.address, engine, { engines: available, lockMs })).toEqual([]);
    expect(await seen()).toEqual({ kind: 'installed', version: '0.0.1' });
    const upgraded: string[] = [];
    const onUpgrade = (from: string): number => upgraded.push(from);
    await ensureInstalled(database.address, engine, { engines: available, lockMs, onUpgrade });
    await ensureInstalled(database.address, engine, { engines: available, lockMs, onUpgrade });
    expect(await seen()).toEqual({ kind: 'installed', version: engineVersion });
    expect(upgraded).toEqual(['0.0.1']);
  });

  it.each([
    ['its own engine is available', '0.0.1', ['0.0.1', engineVersion]],
    ['it is at a newer version', '99.0.0', [engineVersion]],
  ])('a start does not change a default tenant if %s', async (_, version, have) => {
    await installedAt(version);
    const client = await engineConnection(version);
    const upgraded: string[] = [];
    const onUpgrade = (from: string): number => upgraded.push(from);
    expect(await ensureInstalled(database.address, engine, { engines: only(...have), lockMs, onUpgrade })).toEqual([]);
    expect(upgraded).toEqual([]);
    expect(await seen()).toEqual({ kind: 'installed', version });
    expect(await alive(client)).toBe(true);
  });
});
