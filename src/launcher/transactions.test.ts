/** Migrations, drops, renames and copies by plain SQL, without a message, under a running scheduler. */
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import {
  engineOne,
  installBareTenant,
  session,
  type Stage,
  type StagedTenant,
  stageTest,
} from '../../test/harness/launching.ts';
import type { PlayedHost } from '../../test/harness/played-host.ts';
import { ownServer } from '../../test/harness/postgres-server.ts';
import { until } from '../../test/harness/until.ts';
import { sql } from '../kernel/sql.ts';
import { onDatabase } from '../postgres/address.ts';
import { readSightings } from './discovery/watch.ts';

let back: () => Promise<void>;
beforeAll(async () => {
  back = await ownServer({ max_prepared_transactions: '10' });
});
afterAll(() => back());

interface Scene {
  readonly stage: Stage;
  readonly host: PlayedHost;
  /** Opens a session in a tenant's database, which the test may end. */
  readonly connect: (tenant: StagedTenant, database?: string) => Promise<Client>;
}

const it = stageTest.extend<{ scene: Scene }>({
  scene: async ({ stage }, use) => {
    const sessions: Client[] = [];
    const connect: Scene['connect'] = async (tenant, database = tenant.address.database) => {
      const client = await session(onDatabase(tenant.address, database));
      sessions.push(client);
      return client;
    };
    await use({ stage, host: await stage.host(), connect });
    await Promise.all(sessions.map((client) => client.end().catch(() => {})));
  },
});

const drain = 'select pg_advisory_xact_lock(7345, 4)';
const drainShared = 'select pg_advisory_lock_shared(7345, 4)';

async function begin(connect: Scene['connect'], tenant: StagedTenant): Promise<{ client: Client; xid: string }> {
  const client = await connect(tenant);
  await client.query('begin');
  const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid');
  await client.query(drain);
  return { client, xid: rows[0]?.xid ?? '' };
}

async function running(stage: Stage): Promise<StagedTenant> {
  const tenant = await stage.tenant('a');
  await stage.launch();
  await stage.becomes(tenant, 'STARTED');
  return tenant;
}

const messages = ({ control }: Stage, tenant: StagedTenant) =>
  control.db.rows<{ sender: string; cause: string; xid: string | null; outcome: string }>(sql`
    select sender, cause, xid::text, outcome from message where tenant_id = ${tenant.id} order by id`);

describe.concurrent('change without the lock, which the scheduler reports', () => {
  it.for([
    [`update millrace.installation set version = '2.0.0'`, 'starting', 'no_engine', '2.0.0'],
    ['drop schema millrace cascade', 'not_installed', 'not_installed', null],
  ] as const)(
    '%s: all processes with connections are notified',
    async ([change, word, code, version], { scene: { stage, host, connect } }) => {
      const tenant = await running(stage);
      const hinted: string[] = [];
      stage.hub.onAny('tenant', (about, changed) => void hinted.push(`${about} ${changed}`));
      await (await connect(tenant)).query(change);
      await host.end(tenant.id, { code: word, reason: 'it is another' });
      expect(await stage.becomes(tenant, 'DISABLED', code)).toMatchObject({ version });
      await until('all are notified', () => hinted.includes(`${tenant.id} true`) || undefined);
    },
  );

  it('a mere restart sends no notification', async ({ scene: { stage, host } }) => {
    const tenant = await running(stage);
    const hinted: string[] = [];
    stage.hub.onAny('tenant', (about) => void hinted.push(about ?? 'any'));
    await host.end(tenant.id, { code: 'starting', reason: 'for some reason' });
    await until('it runs again', async () => {
      const view = await stage.view(tenant);
      return (view?.state === 'STARTED' && view.order_no === 2) || undefined;
    });
    expect(hinted).toEqual([]);
  });
});

describe.concurrent('migration without a message', () => {
  it('a migration ends the scheduler, and its commit is followed by a start at the new version', async ({
    scene: { stage, host, connect },
  }) => {
    const tenant = await running(stage);
    const { client, xid } = await begin(connect, tenant);
    expect(await stage.becomes(tenant, 'ALLOCATED', 'waiting_on_transaction')).toMatchObject({
      reason: `waiting on transaction ${xid}`,
      ordered: false,
    });
    expect(host.running.size).toBe(0);
    const slots = await stage.control.db.rows(
      sql`select granted_at is not null as held from slot where kind = 'scheduler'`,
    );
    expect(slots, 'it keeps its slot').toEqual([{ held: true }]);
    expect(await messages(stage, tenant)).toMatchObject([{ sender: 'sql', xid, outcome: 'waiting_for_transaction' }]);
    await client.query(`update millrace.installation set version = '2.0.0'`);
    await client.query('commit');
    expect(await stage.becomes(tenant, 'DISABLED', 'no_engine')).toMatchObject({ version: '2.0.0' });
    expect(await messages(stage, tenant)).toMatchObject([{ outcome: 'no_engine' }]);
  });

  it.for<readonly [how: string, end: (client: Client) => Promise<unknown>]>([
    ['rolled back', (client: Client) => client.query('rollback')],
    ['killed', (client: Client) => client.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {})],
  ])(
    'after a migration that is %s, the tenant runs at the old version',
    async ([, end], { scene: { stage, connect } }) => {
      const tenant = await running(stage);
      const { client } = await begin(connect, tenant);
      await stage.becomes(tenant, 'ALLOCATED', 'waiting_on_transaction');
      await end(client);
      expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ order_no: 2, version: engineOne });
      expect(await messages(stage, tenant)).toMatchObject([{ outcome: 'started' }]);
    },
  );

  it('a tenant waits for a prepared migration until that is decided', async ({ scene: { stage, connect } }) => {
    const tenant = await running(stage);
    const { client, xid } = await begin(connect, tenant);
    await stage.becomes(tenant, 'ALLOCATED', 'waiting_on_transaction');
    await client.query(`prepare transaction 'p'`);
    await client.end();
    await until('only the prepared transaction holds it', async () => {
      const view = await stage.view(tenant);
      return view?.reason === `waiting on transaction ${xid} (prepared)` || undefined;
    });
    const other = await connect(tenant);
    await other.query(`commit prepared 'p'`);
    await stage.becomes(tenant, 'STARTED');
    expect(await messages(stage, tenant)).toHaveLength(1);
  });

  it('an installation by plain SQL starts the tenant', async ({ scene: { stage, connect } }) => {
    const tenant = await stage.tenant('a', { installed: null });
    await stage.launch();
    await stage.becomes(tenant, 'DISABLED', 'not_installed');
    const { client } = await begin(connect, tenant);
    await stage.becomes(tenant, 'ALLOCATED', 'waiting_on_transaction');
    await client.query(`create schema millrace; create table millrace.installation (version text not null)`);
    await client.query(`insert into millrace.installation values ('${engineOne}')`);
    await client.query('commit');
    await stage.becomes(tenant, 'STARTED');
  });

  it('a migration that its sender has announced gets no second message', async ({ scene: { stage, connect } }) => {
    const tenant = await running(stage);
    const client = await connect(tenant);
    await client.query('begin');
    const { rows } = await client.query<{ xid: string; pid: number }>(
      'select pg_current_xact_id()::text as xid, pg_backend_pid() as pid',
    );
    const id = await stage.send(tenant, 'restart', rows[0]);
    await stage.becomes(tenant, 'ALLOCATED', 'waiting_on_transaction');
    // acknowledged before the wait, although its lock was not requested yet
    const message = await stage.control.db.one<{ at: Date | null }>(sql`
      select acknowledged_at as at from message where id = ${id}`);
    expect(message.at).not.toBeNull();
    await client.query(drain);
    const seen = await readSightings(stage.control.db);
    expect(seen.map(({ xid }) => xid)).toContain(rows[0]?.xid);
    // the launcher's watch sees all transactions at once: it has seen the announced one as well
    const other = await stage.tenant('b');
    await begin(connect, other);
    await stage.becomes(other, 'ALLOCATED', 'waiting_on_transaction');
    await client.query('commit');
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'started' });
    expect(await messages(stage, tenant)).toHaveLength(1);
  });

  it('the launcher ends a connection that a migration waits for in vain', async ({ scene: { stage, connect } }) => {
    const tenant = await running(stage);
    const stubborn = await connect(tenant);
    await stubborn.query(drainShared);
    const { client } = await begin(connect, tenant);
    await expect(stubborn.query('select 1')).rejects.toThrow();
    await client.query('commit');
    await stage.becomes(tenant, 'STARTED');
  });

  it('a migration of a tenant that is off starts nothing', async ({ scene: { stage, connect } }) => {
    const tenant = await stage.tenant('a', { desired: 'off' });
    await stage.launch();
    await stage.becomes(tenant, 'DISABLED', 'stopped_by_user');
    const { client, xid } = await begin(connect, tenant);
    const id = await stage.send(tenant, 'restart', { xid, pid: 1 });
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'stopped' });
    await client.query('commit');
    expect(await stage.view(tenant)).toMatchObject({ state: 'DISABLED', code: 'stopped_by_user', order_no: 0 });
  });
});

describe.concurrent('transaction that has locked tables without a message', () => {
  /** Begins a transaction that locks tables for which an engine's connection waits. */
  async function lockedOut(
    connect: Scene['connect'],
    tenant: StagedTenant,
    statement: string,
  ): Promise<{ client: Client; xid: string }> {
    const engine = await connect(tenant);
    await engine.query(drainShared);
    const client = await connect(tenant);
    await client.query('begin');
    const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid');
    await client.query(statement);
    engine.query('select from millrace.installation').catch(() => {});
    return { client, xid: rows[0]?.xid ?? '' };
  }

  it('a transaction that has locked tables is named, and nothing runs until it ends', async ({
    scene: { stage, host, connect },
  }) => {
    const tenant = await running(stage);
    const { client, xid } = await lockedOut(
      connect,
      tenant,
      'lock table millrace.installation in access exclusive mode',
    );
    expect(await stage.becomes(tenant, 'ALLOCATED', 'waiting_on_transaction')).toMatchObject({
      reason: `waiting on transaction ${xid}`,
    });
    expect(host.running.size).toBe(0);
    expect(await messages(stage, tenant)).toMatchObject([{ cause: textWith('its tables are locked (pid '), xid }]);
    await client.query('rollback');
    expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ order_no: 2 });
  });

  it('a prepared transaction that has dropped the schema is named, and takes effect when it is committed', async ({
    scene: { stage, connect },
  }) => {
    const tenant = await stage.tenant('a');
    const client = await connect(tenant);
    await client.query('begin; drop schema millrace cascade');
    const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid');
    await client.query(`prepare transaction 'dropping'`);
    await stage.launch();
    await until('it is named', async () => {
      const view = await stage.view(tenant);
      return view?.reason === `waiting on transaction ${rows[0]?.xid} (prepared)` || undefined;
    });
    await client.query(`commit prepared 'dropping'`);
    await stage.becomes(tenant, 'DISABLED', 'not_installed');
  });
});

describe.concurrent('command that tolerates no session', () => {
  /** Opens the connection that a scheduler would hold, and closes it when the scheduler ends. */
  async function holding({ host, connect }: Scene, tenant: StagedTenant): Promise<void> {
    const client = await connect(tenant);
    await client.query(drainShared);
    const watching = setInterval(() => {
      if (host.running.has(tenant.id)) return;
      clearInterval(watching);
      void client.end();
    }, 20);
  }

  it('a drop works under a running scheduler, and the tenant is reported as gone', async ({ scene }) => {
    const { stage, connect } = scene;
    const tenant = await running(stage);
    await holding(scene, tenant);
    const client = await connect(tenant, 'postgres');
    await client.query(`drop database ${tenant.address.database}`);
    await stage.becomes(tenant, 'DISABLED', 'gone');
  });

  it('a rename works under a running scheduler, and the tenant runs again', async ({ scene }) => {
    const { stage, connect } = scene;
    const tenant = await running(stage);
    await holding(scene, tenant);
    const client = await connect(tenant, 'postgres');
    const renamed = `${tenant.address.database}_renamed`;
    await client.query(`alter database ${tenant.address.database} rename to ${renamed}`);
    await until('its row has followed', async () => {
      const row = await stage.control.db.one<{ database: string }>(sql`select database from tenant`);
      return row.database === renamed || undefined;
    });
    expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ order_no: 2 });
    await stage.send(tenant, 'stop');
    await stage.becomes(tenant, 'DISABLED', 'stopped_by_user');
    await client.query(`drop database ${renamed}`);
  });

  it('a copy of a running tenant’s database works, and the tenant runs again', async ({ scene }) => {
    const { stage, connect } = scene;
    const tenant = await running(stage);
    await holding(scene, tenant);
    const client = await connect(tenant, 'postgres');
    await client.query(`create database copied template ${tenant.address.database}`);
    await until('it runs again', async () => {
      const view = await stage.view(tenant);
      return (view?.state === 'STARTED' && view.order_no === 2) || undefined;
    });
    await client.query('drop database copied');
  });

  it('a tenant whose database becomes a template or closed stops, and runs again afterwards', async ({
    scene: { stage, connect },
  }) => {
    const tenant = await running(stage);
    const client = await connect(tenant, 'postgres');
    await client.query(`alter database ${tenant.address.database} is_template true`);
    expect(await stage.becomes(tenant, 'DISABLED', 'not_connectable')).toMatchObject({
      reason: 'its database is a template',
    });
    expect(await stage.outcome(await stage.send(tenant, 'start'))).toMatchObject({ outcome: 'unreachable' });
    await client.query(`alter database ${tenant.address.database} is_template false`);
    await stage.becomes(tenant, 'STARTED');
    await client.query(`alter database ${tenant.address.database} allow_connections false`);
    expect(await stage.becomes(tenant, 'DISABLED', 'not_connectable')).toMatchObject({
      reason: 'its database accepts no connections',
    });
    await client.query(`alter database ${tenant.address.database} allow_connections true`);
    await stage.becomes(tenant, 'STARTED');
  });
});

describe('discovery', () => {
  const tenantsOf = ({ control }: Stage) =>
    control.db.rows<{ name: string; discovered: boolean }>(sql`select name, discovered from tenant order by name`);
  const eventsOf = async ({ control }: Stage) =>
    (
      await control.db.rows<{ type: string }>(sql`
        select type from event where topic_id = 1 and type <> 'tenant.state' order by seq`)
    ).map(({ type }) => type);

  it('discovery makes tenants of databases, and deletes them when their databases are gone', async ({
    scene: { stage, host, connect },
  }) => {
    await stage.launch({ discover: 'all' });
    const client = await connect({ id: '', name: '', address: stage.control.address }, 'postgres');
    await client.query('create database found_one');
    await client.query('create database found_template is_template true');
    await until('it is found', async () => (await tenantsOf(stage)).length === 1 || undefined);
    expect(await tenantsOf(stage)).toEqual([{ name: 'found_one', discovered: true }]);
    const { id } = await stage.control.db.one<{ id: string }>(sql`select id from tenant`);
    const found = { id, name: 'found_one', address: onDatabase(stage.control.address, 'found_one') };
    await stage.becomes(found, 'DISABLED', 'not_installed');
    await installBareTenant(found.address, engineOne);
    await stage.becomes(found, 'STARTED');
    await client.query('alter database found_one rename to found_two');
    await until('it is renamed', async () => (await tenantsOf(stage))[0]?.name === 'found_two' || undefined);
    await stage.becomes(found, 'STARTED');
    await client.query('drop database found_two');
    await until('it is gone', async () => (await tenantsOf(stage)).length === 0 || undefined);
    await until('its host has let go', () => host.running.size === 0 || undefined);
    expect(await eventsOf(stage)).toEqual([
      'tenant.discovered',
      'tenant.version_changed',
      'tenant.renamed',
      'tenant.gone',
    ]);
    await client.query('alter database found_template is_template false');
    await client.query('drop database found_template');
  });

  it('a registered tenant whose database is gone stays, and runs when there is a database again', async ({
    scene: { stage, connect },
  }) => {
    const tenant = await running(stage);
    const client = await connect(tenant, 'postgres');
    await client.query(`drop database ${tenant.address.database}`);
    await stage.becomes(tenant, 'DISABLED', 'gone');
    await client.query(`create database ${tenant.address.database}`);
    await stage.becomes(tenant, 'DISABLED', 'not_installed');
    await installBareTenant(tenant.address, engineOne);
    await stage.becomes(tenant, 'STARTED');
  });
});
