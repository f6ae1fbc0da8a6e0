/** The loader when a tenant changes, is renamed, is gone or cannot be reached: it reacts at once, without effect on others. */
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { everyone } from '../contract/channels.ts';
import { textWith } from '../../test/harness/expected.ts';
import { type Fleet, makeFleet, opened } from '../../test/harness/fleet.ts';
import { type FreshDatabase, makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { until } from '../../test/harness/until.ts';
import { engine } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { onClient, onPool, sql } from '../kernel/sql.ts';
import { onDatabase } from '../postgres/address.ts';
import { withClient } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import { registerTenant, type TenantRow } from '../control/queries.ts';
import type { Loader, OpenTenant } from './loader.ts';

let fleet: Fleet;
const databases: FreshDatabase[] = [];
beforeAll(async () => {
  fleet = await makeFleet(['neighbour']);
});
afterAll(async () => {
  await fleet.close();
  await Promise.all(databases.map((database) => database.close()));
});

async function tenant(name: string): Promise<{ row: TenantRow; database: FreshDatabase }> {
  const database = await makeInstalledTenant();
  databases.push(database);
  const row = { id: newId(), name, database: database.address.database };
  await registerTenant(fleet.control.db, { ...row, at: new Date() });
  return { row: { ...row, desired: 'on' }, database };
}

const ask = ({ ctx }: OpenTenant): Promise<unknown> => onPool(ctx.pool).one(sql`select 1 as x`);
const change = (row: TenantRow): void => fleet.hub.send('tenant', row.id, true);
const connections = async (database: string): Promise<number> =>
  (await fleet.control.db.rows(sql`select 1 from pg_stat_activity where datname = ${database}`)).length;
const timed = async (work: Promise<unknown>): Promise<{ ms: number; outcome: unknown }> => {
  const startedAt = performance.now();
  const outcome: unknown = await work.catch((error: unknown) => error);
  return { ms: performance.now() - startedAt, outcome };
};

describe('former name of a tenant', () => {
  const rename = async (row: TenantRow, name: string): Promise<void> => {
    await fleet.control.db.exec(sql`update tenant set name = ${name} where id = ${row.id}`);
    change(row);
  };

  it('runs find a renamed tenant by its former name for a day, unless another tenant takes the name', async () => {
    const { row } = await tenant('once');
    const loader = fleet.newLoader();
    await rename(row, 'then');
    await rename(row, 'now');
    for (const name of ['once', 'then', 'now']) expect((await opened(loader, name)).row).toMatchObject({ id: row.id });
    await expect(loader.find('once')).rejects.toMatchObject({ code: 'not_found' });
    expect(await loader.findAlways('once')).toMatchObject({ name: 'now' });
    const { row: other } = await tenant('then');
    await until('the list is read anew', async () => (await loader.findAlways('then')).id === other.id || undefined);
    expect((await loader.findAlways('once')).id).toBe(row.id);
    await fleet.control.db.exec(sql`update former_name set until = now()`);
    loader.forgetList();
    await expect(loader.findAlways('once')).rejects.toMatchObject({ code: 'not_found' });
    await fleet.control.db.exec(sql`delete from tenant where id in (${row.id}, ${other.id})`);
    expect(await fleet.control.db.rows(sql`select name from former_name`)).toEqual([]);
  });
});

describe('notification that a tenant changed', () => {
  it('a notification closes the tenant’s connections at once, and no others; the next use opens it again', async () => {
    const { row } = await tenant('hinted');
    const loader = fleet.newLoader();
    const [open, neighbour] = [await opened(loader, 'hinted'), await opened(loader, 'neighbour')];
    await Promise.all([ask(open), ask(neighbour)]);
    change(row);
    await expect(ask(open)).rejects.toThrow('after calling end');
    await until('none is left', async () => (await connections(row.database)) === 0 || undefined);
    expect(await ask(neighbour)).toEqual({ x: 1 });
    expect(await opened(loader, 'neighbour')).toBe(neighbour);
    const again = await opened(loader, 'hinted');
    expect(again).not.toBe(open);
    expect(await ask(again)).toEqual({ x: 1 });
  });

  it('a notification lets a running statement end, and rejects waiting requests for a connection at once', async () => {
    const { row, database } = await tenant('at work');
    const loader = fleet.newLoader({ poolSize: 1 });
    const { ctx } = await loader.open(row);
    await withClient(database.address, async (client) => {
      // the statement below waits for this lock
      await client.query('select pg_advisory_lock(7)');
      const working = onPool(ctx.pool).one(sql`select 'done' as word, pg_advisory_lock_shared(7)`);
      await until(
        'it works',
        async () => (await client.query(`select from pg_locks where not granted`)).rowCount === 1,
      );
      const waiting = timed(onPool(ctx.pool).one(sql`select 1`));
      await until('another waits', () => ctx.pool.waitingCount === 1 || undefined);
      change(row);
      expect((await waiting).outcome).toMatchObject({ message: textWith('after calling end') });
      await client.query('select pg_advisory_unlock(7)');
      expect(await working).toMatchObject({ word: 'done' });
    });
    await until('none is left', async () => (await connections(row.database)) === 0 || undefined);
  });

  it('connections that do not close in time are cut off', async () => {
    const { row } = await tenant('slow');
    const loader = fleet.newLoader();
    const { ctx } = await loader.open(row);
    const working = timed(onPool(ctx.pool).one(sql`select pg_sleep(60)`));
    const held = await ctx.pool.connect();
    held.on('error', () => {});
    await until('it works', () => ctx.pool.totalCount === 2 || undefined);
    const { ms } = await timed(loader.close(row.id));
    expect(ms).toBeLessThan(25_000);
    expect((await working).outcome).toBeInstanceOf(Error);
    // a statement on the server goes on until it notices that its connection is cut; an idle connection is gone at once
    await until('the one that was only held is gone', async () => (await connections(row.database)) <= 1 || undefined);
  });

  it('work that may be repeated is repeated with the tenant’s new engine', async () => {
    const { row } = await tenant('twice');
    const loader = fleet.newLoader();
    const seen: OpenTenant[] = [];
    const answer = await loader.use(row.id, async (open) => {
      if (seen.push(open) === 1) change(row);
      return ask(open);
    });
    expect(answer).toEqual({ x: 1 });
    expect(seen).toHaveLength(2);
    const failing = loader.use(row.id, async () => {
      throw new Error('of its own');
    });
    await expect(failing).rejects.toThrow('of its own');
  });

  it.each([
    ['for all tenants', everyone],
    ['for one tenant', undefined],
  ])(
    'notifications that may have been missed, %s, close nothing: connections check their version',
    async (_, about) => {
      const { row } = await tenant(`missed ${about ?? 'one'}`);
      const loader = fleet.newLoader();
      const open = await loader.open(row);
      fleet.hub.send('tenant', about ?? row.id);
      expect(await ask(open)).toEqual({ x: 1 });
      expect(await loader.open(row)).toBe(open);
    },
  );
});

describe('changed tenant', () => {
  it('a renamed tenant is found by its new name as soon as the notification arrives', async () => {
    const { row } = await tenant('old name');
    const loader = fleet.newLoader();
    const before = await opened(loader, 'old name');
    await fleet.control.db.exec(sql`update tenant set name = 'new name' where id = ${row.id}`);
    change(row);
    await expect(loader.find('old name')).rejects.toMatchObject({ code: 'not_found' });
    const after = await opened(loader, 'new name');
    expect(after.ctx.tenant.name).toBe('new name');
    expect(before.ctx.pool.ending).toBe(true);
  });

  it('a tenant that was renamed without a notification is opened again when the list shows it', async () => {
    const { row } = await tenant('silent name');
    const loader = fleet.newLoader();
    const before = await opened(loader, 'silent name');
    await fleet.control.db.exec(sql`update tenant set name = 'loud name' where id = ${row.id}`);
    const after = await opened(loader, 'loud name');
    expect(after.row.name).toBe('loud name');
    expect(before.ctx.pool.ending).toBe(true);
  });

  it('a tenant that was dropped without a notification is closed when the list no longer has it', async () => {
    const { row } = await tenant('dropped');
    const loader = fleet.newLoader();
    const open = await opened(loader, 'dropped');
    await fleet.control.db.exec(sql`delete from tenant where id = ${row.id}`);
    loader.forgetList();
    await expect(opened(loader, 'dropped')).rejects.toMatchObject({ code: 'not_found' });
    expect(open.ctx.pool.ending).toBe(true);
  });

  it('requests for a tenant that is being upgraded wait for the end of the upgrade', async () => {
    const { row, database } = await tenant('upgrading');
    const loader = fleet.newLoader();
    let asking: Promise<unknown> = Promise.resolve();
    await withClient(database.address, async (client) => {
      await client.query('begin');
      await onClient(client).exec(
        sql`select pg_advisory_xact_lock(${locks.drain[0]}::integer, ${locks.drain[1]}::integer)`,
      );
      asking = loader.open(row).then(ask);
      await until('it waits', async () => (await connections(row.database)) === 2 || undefined);
      await client.query('commit');
    });
    expect(await asking).toEqual({ x: 1 });
  });

  it('requests during a long upgrade fail after a few seconds, whether the tenant was open or not', async () => {
    const { row, database } = await tenant('long upgrade');
    const [fresh, known] = [fleet.newLoader(), fleet.newLoader()];
    const open = await known.open(row);
    await withClient(database.address, async (client) => {
      await client.query('begin');
      await onClient(client).exec(
        sql`select pg_advisory_xact_lock(${locks.drain[0]}::integer, ${locks.drain[1]}::integer)`,
      );
      const [ofUnopened, ofOpen] = await Promise.all([timed(opened(fresh, 'long upgrade')), timed(ask(open))]);
      expect(ofUnopened.outcome).toMatchObject({
        code: 'tenant_unavailable',
        message: 'tenant long upgrade is being upgraded',
      });
      expect(ofOpen.outcome).toMatchObject({ code: 'tenant_unavailable', message: textWith('is being upgraded') });
      expect(Math.max(ofUnopened.ms, ofOpen.ms)).toBeLessThan(25_000);
      // a connection that waits for the lock does not delay the close
      const waiting = ask(open).catch(() => {});
      await until('it waits', () => open.ctx.pool.totalCount > 0 || undefined);
      expect((await timed(known.close(row.id))).ms).toBeLessThan(25_000);
      await waiting;
    });
    expect(await until('it is open again', () => opened(fresh, 'long upgrade').catch(() => undefined))).toBeDefined();
  });
});

it('a tenant whose tables another transaction has locked is not reported as being upgraded', async () => {
  const { row, database } = await tenant('locked');
  const [fresh, known] = [fleet.newLoader(), fleet.newLoader()];
  const open = await known.open(row);
  await withClient(database.address, async (client) => {
    await client.query('begin; lock table millrace.installation in access exclusive mode');
    const [ofUnopened, ofOpen] = await Promise.all([timed(opened(fresh, 'locked')), timed(ask(open))]);
    const lockedError = (tables: string) => ({
      code: 'tenant_unavailable',
      message: `another transaction has locked ${tables}; try again`,
    });
    expect(ofUnopened.outcome).toMatchObject(lockedError('the tables of tenant locked'));
    expect(ofOpen.outcome).toMatchObject(lockedError("the tenant's tables"));
  });
});

describe('tenant whose server does not answer', () => {
  let silent: Server;
  const sockets = new Set<Socket>();
  let attempts = 0;
  let loader: Loader;
  let row: TenantRow;
  beforeAll(async () => {
    silent = createServer((socket) => {
      attempts++;
      sockets.add(socket.on('error', () => {}));
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    ({ row } = await tenant('unreachable'));
    const { port } = silent.address() as AddressInfo;
    const nowhere = onDatabase({ url: `postgres://nobody@127.0.0.1:${port}` }, 'x');
    loader = fleet.newLoader({
      engines: [engine],
      addressOf: ({ id, database }) => (id === row.id ? nowhere : onDatabase(fleet.control.address, database)),
    });
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it('concurrent requests share one attempt of bounded time, and later ones fail at once for a while', async () => {
    const asked = await Promise.all(Array.from({ length: 20 }, () => timed(opened(loader, 'unreachable'))));
    expect(attempts).toBe(1);
    for (const { ms, outcome } of asked) {
      expect(outcome).toMatchObject({ code: 'tenant_unavailable', message: textWith('tenant unreachable cannot be') });
      expect(ms).toBeLessThan(8_000);
    }
    const next = await timed(opened(loader, 'unreachable'));
    expect(attempts).toBe(1);
    expect(next.ms).toBeLessThan(500);
    await until('it is tried again', async () => {
      void opened(loader, 'unreachable').catch(() => {});
      return attempts === 2 || undefined;
    });
  });

  it('an unreachable tenant does not delay other tenants', async () => {
    const stuck = timed(opened(loader, 'unreachable'));
    const { outcome } = await timed(opened(loader, 'neighbour').then(ask));
    expect(outcome).toEqual({ x: 1 });
    await stuck;
  });
});
