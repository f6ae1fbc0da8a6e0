/** What the loader does when a tenant changes, moves, is gone or cannot be reached: at once, and nobody else notices. */
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

describe('a tenant that was renamed', () => {
  const rename = async (row: TenantRow, name: string): Promise<void> => {
    await fleet.control.db.exec(sql`update tenant set name = ${name} where id = ${row.id}`);
    change(row);
  };

  it('is known to runs by the name it had, for a day, until another has that', async () => {
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

describe('the hint that a tenant changed', () => {
  it('closes its connections at once, and no other tenant’s; the next use opens anew', async () => {
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

  it('lets a statement under way end, and turns away at once those who wait for a connection', async () => {
    const { row, database } = await tenant('at work');
    const loader = fleet.newLoader({ poolSize: 1 });
    const { ctx } = await loader.open(row);
    await withClient(database.address, async (client) => {
      // which the statement waits for
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

  it('cuts off who takes too long', async () => {
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
    // on the server a statement goes on until it notices, a connection that was idle is gone
    await until('the one that was only held is gone', async () => (await connections(row.database)) <= 1 || undefined);
  });

  it('makes work that may be done twice go on with the engine that the tenant has now', async () => {
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
    ['for all', everyone],
    ['for one', undefined],
  ])('that may have been missed, %s, closes nothing: connections prove themselves', async (_, about) => {
    const { row } = await tenant(`missed ${about ?? 'one'}`);
    const loader = fleet.newLoader();
    const open = await loader.open(row);
    fleet.hub.send('tenant', about ?? row.id);
    expect(await ask(open)).toEqual({ x: 1 });
    expect(await loader.open(row)).toBe(open);
  });
});

describe('a tenant that is', () => {
  it('renamed answers to its new name as soon as that is heard of', async () => {
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

  it('renamed while nobody said so is opened anew when the list says so', async () => {
    const { row } = await tenant('silent name');
    const loader = fleet.newLoader();
    const before = await opened(loader, 'silent name');
    await fleet.control.db.exec(sql`update tenant set name = 'loud name' where id = ${row.id}`);
    const after = await opened(loader, 'loud name');
    expect(after.row.name).toBe('loud name');
    expect(before.ctx.pool.ending).toBe(true);
  });

  it('dropped while nobody said so is closed when the list has it no more', async () => {
    const { row } = await tenant('dropped');
    const loader = fleet.newLoader();
    const open = await opened(loader, 'dropped');
    await fleet.control.db.exec(sql`delete from tenant where id = ${row.id}`);
    loader.forgetList();
    await expect(opened(loader, 'dropped')).rejects.toMatchObject({ code: 'not_found' });
    expect(open.ctx.pool.ending).toBe(true);
  });

  it('being upgraded keeps those who ask waiting for its end', async () => {
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

  it('being upgraded for long tells them so after a few seconds, whether it was open or not', async () => {
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
      // a connection that waits for the lock keeps nobody from closing
      const waiting = ask(open).catch(() => {});
      await until('it waits', () => open.ctx.pool.totalCount > 0 || undefined);
      expect((await timed(known.close(row.id))).ms).toBeLessThan(25_000);
      await waiting;
    });
    expect(await until('it is open again', () => opened(fresh, 'long upgrade').catch(() => undefined))).toBeDefined();
  });
});

it('a tenant whose tables somebody has locked is not said to be upgraded', async () => {
  const { row, database } = await tenant('locked');
  const [fresh, known] = [fleet.newLoader(), fleet.newLoader()];
  const open = await known.open(row);
  await withClient(database.address, async (client) => {
    await client.query('begin; lock table millrace.installation in access exclusive mode');
    const [ofUnopened, ofOpen] = await Promise.all([timed(opened(fresh, 'locked')), timed(ask(open))]);
    const said = (tables: string) => ({
      code: 'tenant_unavailable',
      message: `another transaction has locked ${tables}; try again`,
    });
    expect(ofUnopened.outcome).toMatchObject(said('the tables of tenant locked'));
    expect(ofOpen.outcome).toMatchObject(said("the tenant's tables"));
  });
});

describe('a tenant whose server does not answer', () => {
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

  it('is tried once for all who ask, in bounded time, and then refused at once with the reason for a while', async () => {
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

  it('keeps no other waiting', async () => {
    const stuck = timed(opened(loader, 'unreachable'));
    const { outcome } = await timed(opened(loader, 'neighbour').then(ask));
    expect(outcome).toEqual({ x: 1 });
    await stuck;
  });
});
