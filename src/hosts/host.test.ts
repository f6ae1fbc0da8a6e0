import type { QueryResultRow } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import type { Fleet } from '../../test/harness/fleet.ts';
import { type Hosting, makeHosting, makeMisbehavingEngine } from '../../test/harness/hosting.ts';
import type { PlayedLauncher } from '../../test/harness/played-launcher.ts';
import { until } from '../../test/harness/until.ts';
import { engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { pause } from '../kernel/service.ts';
import { type Db, type Sql, sql } from '../kernel/sql.ts';
import { onDatabase } from '../postgres/address.ts';
import type { Host, HostOptions } from './host.ts';
import { usualLimits } from './tenant-scheduler.ts';

let fleet: Fleet;
let launcher: PlayedLauncher;
let hosting: Hosting;
let a = '';
let b = '';
beforeAll(async () => {
  hosting = await makeHosting();
  ({
    fleet,
    launcher,
    tenantIds: [a, b],
  } = hosting);
});
afterEach(() => hosting.stopHosts());
afterAll(() => fleet.close());
const startHost = (more?: Partial<HostOptions>): Promise<Host> => hosting.startHost(more);

type HostRow = { id: string; pid: number; engine: string; memory: number; fresh: boolean };
const hosts = (): Promise<HostRow[]> =>
  fleet.control.db.rows<HostRow>(sql`
    select id, pid, engine, memory, beat_at > now() - interval '2 seconds' as fresh from host order by started_at`);
const connected = async (hostId: string): Promise<string[]> => {
  const rows = await fleet.control.db.rows<{ name: string }>(sql`
    select application_name as name from pg_stat_activity
     where application_name like ${`millrace host ${hostId.slice(-12)} %`}`);
  return rows.map(({ name }) => name);
};

describe('host', () => {
  it('a host registers, beats, and removes its row when it stops', async () => {
    const host = await startHost();
    const [row] = await hosts();
    expect(row).toMatchObject({ id: host.id(), pid: process.pid, engine: engineVersion });
    expect(row?.memory).toBeGreaterThan(1_000_000);
    await fleet.control.db.exec(sql`update host set beat_at = now() - interval '1 minute', memory = 0`);
    await until('it has beaten', async () => (await hosts()).some(({ fresh, memory }) => fresh && memory > 0));
    await host.stop();
    expect(await hosts()).toEqual([]);
  });

  it('a host beats although the row of one of its schedulers is locked', async () => {
    const host = await startHost();
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
    const { db, pool } = fleet.control;
    const locker = await pool.connect();
    await locker.query('begin');
    await locker.query('select from control.scheduler where tenant_id = $1 for update', [a]);
    await until('the beat of its scheduler waits for the lock', async () => {
      const waiting = await db.rows(sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and query like '%update scheduler%'`);
      return waiting.length > 0 || undefined;
    });
    await db.exec(sql`update host set beat_at = now() - interval '1 minute'`);
    await until('it has beaten', async () => (await hosts()).some(({ fresh }) => fresh));
    await locker.query('rollback');
    locker.release();
  });

  it('a host runs exactly the tenants of its orders, and reports on them', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), engineVersion);
    expect(await launcher.waitForReport(a, order, 'running')).toMatchObject({
      host_id: host.id(),
      code: null,
      reason: null,
    });
    expect(await launcher.readReport(b)).toBeUndefined();
    expect(await connected(host.id())).toContain(`millrace host ${host.id().slice(-12)} ${engineVersion} a`);
    await launcher.withdraw(a);
    expect(await launcher.waitForReport(a, order, 'ended')).toMatchObject({
      code: 'stopping',
      reason: 'its host was told to end it',
    });
    await until('it has let go', async () => (await connected(host.id())).length === 0);
  });

  it('a host finds an order without a notification, even if the machine’s clock stands still', async () => {
    vi.spyOn(Date, 'now').mockReturnValue(Date.now());
    const host = await startHost();
    await fleet.control.db.exec(sql`
      insert into launch (tenant_id, state, code, reason, host_id, engine, order_no, ordered, changed_at)
      values (${b}, 'ALLOCATED', 'starting', 'starting', ${host.id()}, ${engineVersion}, 1, true, now())`);
    await launcher.waitForReport(b, 1, 'running');
    vi.restoreAllMocks();
  });

  it('a host reports an order that was withdrawn before it was read as ended at once, and never begins it', async () => {
    const host = await startHost();
    await launcher.order(b, host.id(), engineVersion);
    const { no } = await fleet.control.db.one<{ no: number }>(sql`
      insert into launch (tenant_id, state, code, reason, host_id, order_no, ending, changed_at)
      values (${a}, 'DISABLED', 'stopping', 'stopping', ${host.id()}, 1, true, now())
      on conflict (tenant_id) do update set
        host_id = excluded.host_id, order_no = launch.order_no + 1, ordered = false, ending = true
      returning order_no as no`);
    const before = performance.now();
    fleet.hub.send('orders', host.id());
    expect(await launcher.waitForReport(a, no, 'ended')).toMatchObject({
      code: 'stopping',
      reason: 'it was withdrawn before it was begun',
    });
    expect(performance.now() - before).toBeLessThan(1_500);
    await fleet.control.db.exec(sql`update launch set ending = false, host_id = null where tenant_id = ${a}`);
    const next = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, next, 'running');
  });

  it('a host stores an error text that is too long or has NUL characters, and reports on its other tenants', async () => {
    const host = await startHost(
      makeMisbehavingEngine({ start: () => Promise.reject(new Error(`a\0b${'long '.repeat(10_000)}`)) }),
    );
    const orders = [a, b].map((tenantId) => launcher.order(tenantId, host.id(), engineVersion));
    for (const [i, order] of (await Promise.all(orders)).entries()) {
      const { reason } = await launcher.waitForReport([a, b][i] ?? '', order, 'ended');
      expect(reason).toMatch(/^.*ablong long/);
      expect(reason?.length).toBeLessThanOrEqual(2_000);
    }
  });

  it('a host that gets a newer order stops the scheduler before it starts the successor', async () => {
    const host = await startHost();
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
    const [before] = await fleet.control.db.rows<{ id: string }>(sql`select id from scheduler where tenant_id = ${a}`);
    const second = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, second, 'running');
    const [after] = await fleet.control.db.rows<{ id: string }>(sql`select id from scheduler where tenant_id = ${a}`);
    expect(after?.id).not.toBe(before?.id);
  });

  it('a host does not start an order twice: an ended order stays ended until there is a newer one', async () => {
    let starts = 0;
    const start = async (): Promise<void> => {
      starts += 1;
      throw new Error('no luck');
    };
    const host = await startHost(makeMisbehavingEngine({ start }));
    const first = await launcher.order(a, host.id(), engineVersion);
    expect(await launcher.waitForReport(a, first, 'ended')).toMatchObject({ code: 'crashed', reason: 'no luck' });
    fleet.hub.send('orders', host.id());
    const second = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, second, 'ended');
    expect(starts).toBe(2);
  });

  it('a scheduler that hangs does not affect the other schedulers of its host', async () => {
    const limits = { ...usualLimits, probeEveryMs: 20, probeMs: 50, stopMs: 100 };
    const sick = makeMisbehavingEngine({ probe: () => new Promise(() => {}), stop: () => new Promise(() => {}) });
    let asked = 0;
    const engines = { find: (version: string) => (asked++ === 0 ? sick.engines : well.engines).find(version) };
    const well = makeMisbehavingEngine({});
    const host = await startHost({ engines, limits });
    const hung = await launcher.order(a, host.id(), engineVersion);
    await until('the sick one has begun', () => asked === 1);
    const order = await launcher.order(b, host.id(), engineVersion);
    expect(await launcher.waitForReport(a, hung, 'ended')).toMatchObject({
      code: 'crashed',
      reason: textWith('hangs'),
    });
    expect(await launcher.waitForReport(b, order, 'running')).toMatchObject({ phase: 'running' });
  });

  it('a host reports a scheduler that throws a value without a text', async () => {
    const host = await startHost(makeMisbehavingEngine({ start: () => Promise.reject(Object.create(null)) }));
    const order = await launcher.order(a, host.id(), engineVersion);
    expect(await launcher.waitForReport(a, order, 'ended')).toMatchObject({
      reason: 'an error without a readable text',
    });
  });

  it('a host refuses an order for another engine than its own', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), '9.9.9');
    expect(await launcher.waitForReport(a, order, 'ended')).toMatchObject({
      code: 'starting',
      reason: textWith('9.9.9'),
    });
  });

  it('a host lets go of a tenant that is gone', async () => {
    const id = newId();
    const database = fleet.tenants[0]?.row.database ?? '';
    await fleet.control.db.exec(sql`
      insert into tenant (id, name, database, created_at) values (${id}, 'twin', ${`${database} `}, now())`);
    const address = onDatabase(fleet.control.address, database);
    const host = await startHost({ addressOf: () => address });
    await launcher.waitForReport(id, await launcher.order(id, host.id(), engineVersion), 'running');
    await fleet.control.db.exec(sql`delete from tenant where id = ${id}`);
    await until('it has let go', async () => (await connected(host.id())).length === 0);
    expect(await launcher.readReport(id)).toBeUndefined();
  });

  it('a host that was written off lets go of all tenants and registers again under another id', async () => {
    const host = await startHost();
    const old = host.id();
    const order = await launcher.order(a, old, engineVersion);
    await launcher.waitForReport(a, order, 'running');
    await fleet.control.db.exec(sql`delete from host`);
    const [row] = await until('it is back', async () => {
      const rows = await hosts();
      return rows.length === 1 ? rows : undefined;
    });
    expect(row?.id).not.toBe(old);
    expect(row?.id).toBe(host.id());
    await until('it has let go', async () => (await connected(old)).length === 0);
    // its last report on the old order does not count: it was written off
    expect(await launcher.readReport(a)).toMatchObject({ host_id: old, phase: 'running' });
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
  });

  it('a host that is told to leave lets go of all tenants, then ends', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, order, 'running');
    await fleet.control.db.exec(sql`update host set leaving = true`);
    expect(await host.ended).toMatchObject({ asked: true });
    await host.stop();
    expect(await launcher.readReport(a)).toMatchObject({ phase: 'ended', code: 'stopping' });
    expect(await hosts()).toEqual([]);
  });

  it('a host that was started by hand lets go of all tenants when it is told to leave, and stays', async () => {
    const host = await startHost({ stays: true });
    const old = host.id();
    const order = await launcher.order(a, old, engineVersion);
    await launcher.waitForReport(a, order, 'running');
    await fleet.control.db.exec(sql`update host set leaving = true`);
    await launcher.waitForReport(a, order, 'ended');
    await until('it is back', async () => (await hosts()).some(({ id }) => id !== old));
    expect(await hosts()).toHaveLength(1);
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
  });

  it('a host that has registered again ignores the answer to a beat of its former id', async () => {
    const { db } = fleet.control;
    let leaveAnswers = 0;
    const control: Db = {
      ...db,
      async maybeOne<R extends QueryResultRow>(query: Sql) {
        const row = await db.maybeOne<R>(query);
        // delays the second answer that says "leave" until the host has registered again
        if (row?.['leaving'] !== true || ++leaveAnswers !== 2) return row;
        await until('it is back', async () => (await hosts()).some(({ id }) => id !== old));
        await pause(50);
        return row;
      },
      async exec(query) {
        if (query.compile().text.includes('delete from host'))
          await until('it was answered twice', () => leaveAnswers >= 2);
        return db.exec(query);
      },
    };
    const host = await startHost({ stays: true, control });
    const old = host.id();
    await db.exec(sql`update host set leaving = true`);
    await until('it has another id', () => host.id() !== old || undefined);
    const next = host.id();
    await pause(500);
    expect([leaveAnswers, host.id()]).toEqual([2, next]);
  });

  it('a host does not overwrite the report on a newer order', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, order, 'running');
    const other = newId();
    await fleet.control.db.exec(sql`
      update scheduler set order_no = ${order + 5}, host_id = ${other}, phase = 'running' where tenant_id = ${a}`);
    await host.stop();
    expect(await launcher.readReport(a)).toMatchObject({ order_no: order + 5, host_id: other, phase: 'running' });
    await fleet.control.db.exec(sql`delete from scheduler`);
  });
});
