import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type Fleet, makeFleet } from '../../test/harness/fleet.ts';
import { makeContext } from '../../test/harness/engine-context.ts';
import { networkTo } from '../../test/harness/network.ts';
import { PlayedLauncher } from '../../test/harness/played-launcher.ts';
import { until } from '../../test/harness/until.ts';
import type { Engine, SchedulerStatus } from '../contract/engine.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import { pause, within } from '../kernel/service.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { makeTelemetry } from '../kernel/telemetry.ts';
import { onDatabase } from '../postgres/address.ts';
import { openPool } from '../postgres/pool.ts';
import { makeDirectory } from './directory.ts';
import { type Host, type HostOptions, makeHost } from './host.ts';
import { usualLimits } from './tenant-scheduler.ts';

let fleet: Fleet;
let launcher: PlayedLauncher;
let a = '';
let b = '';
const running: Host[] = [];
const telemetry = makeTelemetry(() => {});
const statuses = new Map<string, SchedulerStatus>();
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  launcher = new PlayedLauncher(fleet.control.db, fleet.hub);
  [a = '', b = ''] = fleet.tenants.map(({ row }) => row.id);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((host) => host.stop()));
  await fleet.control.db.exec(sql`update launch set ordered = false`);
  await fleet.control.db.exec(sql`delete from host`);
});
afterAll(() => fleet.close());

async function startHost(more: Partial<HostOptions> = {}): Promise<Host> {
  const host = makeHost({
    control: fleet.control.db,
    hub: fleet.hub,
    version: engineVersion,
    engines: { find: async () => ({ ok: true, engine }) },
    addressOf: (row) => onDatabase(fleet.control.address, row.database),
    contextFor: (row, pool) => ({
      ...makeContext({ address: fleet.control.address, pool, time: fleet.time }),
      tenant: { id: row.id, name: row.name },
    }),
    statuses,
    telemetry,
    allowPooler: false,
    poolSize: 4,
    memoryLimit: Number.POSITIVE_INFINITY,
    stays: false,
    log: silent,
    ...more,
  });
  running.push(host);
  await host.start();
  return host;
}

/** An engine whose schedulers do as the test says. */
function misbehaving(part: Partial<ReturnType<Engine['scheduler']>>): Pick<HostOptions, 'engines'> {
  const scheduler = (): ReturnType<Engine['scheduler']> => ({
    name: 'misbehaving',
    start: async () => {},
    stop: async () => {},
    probe: async () => {},
    ...part,
  });
  return { engines: { find: async () => ({ ok: true, engine: { ...engine, scheduler } }) } };
}

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

describe('a host', () => {
  it('registers, beats, and is gone when it has stopped', async () => {
    const host = await startHost();
    const [row] = await hosts();
    expect(row).toMatchObject({ id: host.id(), pid: process.pid, engine: engineVersion });
    expect(row?.memory).toBeGreaterThan(1_000_000);
    await fleet.control.db.exec(sql`update host set beat_at = now() - interval '1 minute', memory = 0`);
    await until('it has beaten', async () => (await hosts()).some(({ fresh, memory }) => fresh && memory > 0));
    await host.stop();
    expect(await hosts()).toEqual([]);
  });

  it('runs exactly what it is ordered to, and says so', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), engineVersion);
    expect(await launcher.hears(a, order, 'running')).toMatchObject({ host_id: host.id(), code: null, reason: null });
    expect(await launcher.word(b)).toBeUndefined();
    expect(await connected(host.id())).toContain(`millrace host ${host.id().slice(-12)} ${engineVersion} a`);
    await launcher.withdraw(a);
    expect(await launcher.hears(a, order, 'ended')).toMatchObject({ code: 'stopping', reason: 'it was stopped' });
    await until('it has let go', async () => (await connected(host.id())).length === 0);
  });

  it('finds an order that nobody told it of', async () => {
    const host = await startHost();
    await fleet.control.db.exec(sql`
      insert into launch (tenant_id, state, code, reason, host_id, engine, order_no, ordered, changed_at)
      values (${b}, 'ALLOCATED', 'starting', 'starting', ${host.id()}, ${engineVersion}, 1, true, now())`);
    await launcher.hears(b, 1, 'running');
  });

  it('says at once of an order that was withdrawn before it read it that this has ended, and never begins it', async () => {
    const host = await startHost();
    await launcher.order(b, host.id(), engineVersion);
    const { no } = await fleet.control.db.one<{ no: number }>(sql`
      insert into launch (tenant_id, state, code, reason, host_id, order_no, ending, changed_at)
      values (${a}, 'DISABLED', 'stopping', 'stopping', ${host.id()}, 1, true, now())
      on conflict (tenant_id) do update set
        host_id = excluded.host_id, order_no = launch.order_no + 1, ordered = false, ending = true
      returning order_no as no`);
    const before = performance.now();
    fleet.hub.send(host.id(), 'orders');
    expect(await launcher.hears(a, no, 'ended')).toMatchObject({
      code: 'stopping',
      reason: 'it was withdrawn before it was begun',
    });
    expect(performance.now() - before).toBeLessThan(1_500);
    await fleet.control.db.exec(sql`update launch set ending = false, host_id = null where tenant_id = ${a}`);
    const next = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, next, 'running');
  });

  it('has words for the others whatever those of one are', async () => {
    const host = await startHost(
      misbehaving({ start: () => Promise.reject(new Error(`a\0b${'long '.repeat(10_000)}`)) }),
    );
    const orders = [a, b].map((tenantId) => launcher.order(tenantId, host.id(), engineVersion));
    for (const [i, order] of (await Promise.all(orders)).entries()) {
      const { reason } = await launcher.hears([a, b][i] ?? '', order, 'ended');
      expect(reason).toMatch(/^.*ablong long/);
      expect(reason?.length).toBeLessThanOrEqual(2_000);
    }
  });

  it('stops a scheduler before it starts its successor, when it gets a newer order', async () => {
    const host = await startHost();
    await launcher.hears(a, await launcher.order(a, host.id(), engineVersion), 'running');
    const [before] = await fleet.control.db.rows<{ id: string }>(sql`select id from scheduler where tenant_id = ${a}`);
    const second = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, second, 'running');
    const [after] = await fleet.control.db.rows<{ id: string }>(sql`select id from scheduler where tenant_id = ${a}`);
    expect(after?.id).not.toBe(before?.id);
  });

  it('starts no order twice: one that has ended stays ended until there is a newer one', async () => {
    let starts = 0;
    const start = async (): Promise<void> => {
      starts += 1;
      throw new Error('no luck');
    };
    const host = await startHost(misbehaving({ start }));
    const first = await launcher.order(a, host.id(), engineVersion);
    expect(await launcher.hears(a, first, 'ended')).toMatchObject({ code: 'crashed', reason: 'no luck' });
    fleet.hub.send(host.id(), 'orders');
    const second = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, second, 'ended');
    expect(starts).toBe(2);
  });

  it('lets one that fails, or hangs, take no neighbour with it', async () => {
    const limits = { ...usualLimits, probeEveryMs: 20, probeMs: 50, stopMs: 100 };
    const sick = misbehaving({ probe: () => new Promise(() => {}), stop: () => new Promise(() => {}) });
    let asked = 0;
    const engines = { find: (version: string) => (asked++ === 0 ? sick.engines : well.engines).find(version) };
    const well = misbehaving({});
    const host = await startHost({ engines, limits });
    const hung = await launcher.order(a, host.id(), engineVersion);
    await until('the sick one has begun', () => asked === 1);
    const order = await launcher.order(b, host.id(), engineVersion);
    expect(await launcher.hears(a, hung, 'ended')).toMatchObject({ code: 'crashed', reason: textWith('hangs') });
    expect(await launcher.hears(b, order, 'running')).toMatchObject({ phase: 'running' });
  });

  it('has a word for a scheduler that throws what cannot be said', async () => {
    const host = await startHost(misbehaving({ start: () => Promise.reject(Object.create(null)) }));
    const order = await launcher.order(a, host.id(), engineVersion);
    expect(await launcher.hears(a, order, 'ended')).toMatchObject({ reason: 'an error that cannot be told' });
  });

  it('refuses an order for another engine than its own', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), '9.9.9');
    expect(await launcher.hears(a, order, 'ended')).toMatchObject({ code: 'starting', reason: textWith('9.9.9') });
  });

  it('lets go of a tenant that is gone', async () => {
    const id = newId();
    const database = fleet.tenants[0]?.row.database ?? '';
    await fleet.control.db.exec(sql`
      insert into tenant (id, name, database, created_at) values (${id}, 'twin', ${`${database} `}, now())`);
    const address = onDatabase(fleet.control.address, database);
    const host = await startHost({ addressOf: () => address });
    await launcher.hears(id, await launcher.order(id, host.id(), engineVersion), 'running');
    await fleet.control.db.exec(sql`delete from tenant where id = ${id}`);
    await until('it has let go', async () => (await connected(host.id())).length === 0);
    expect(await launcher.word(id)).toBeUndefined();
  });

  it('that was written off lets go of everything and begins anew under another id', async () => {
    const host = await startHost();
    const old = host.id();
    const order = await launcher.order(a, old, engineVersion);
    await launcher.hears(a, order, 'running');
    await fleet.control.db.exec(sql`delete from host`);
    const [row] = await until('it is back', async () => {
      const rows = await hosts();
      return rows.length === 1 ? rows : undefined;
    });
    expect(row?.id).not.toBe(old);
    expect(row?.id).toBe(host.id());
    expect(await connected(old)).toEqual([]);
    // its last word on the old order was never heard: it was written off
    expect(await launcher.word(a)).toMatchObject({ host_id: old, phase: 'running' });
    await launcher.hears(a, await launcher.order(a, host.id(), engineVersion), 'running');
  });

  it('ends when it is told to leave, having let go of everything', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, order, 'running');
    await fleet.control.db.exec(sql`update host set leaving = true`);
    expect(await host.ended).toMatchObject({ asked: true });
    await host.stop();
    expect(await launcher.word(a)).toMatchObject({ phase: 'ended', code: 'stopping' });
    expect(await hosts()).toEqual([]);
  });

  it('that somebody has started by hand lets go of everything when it is told to leave, and stays', async () => {
    const host = await startHost({ stays: true });
    const old = host.id();
    const order = await launcher.order(a, old, engineVersion);
    await launcher.hears(a, order, 'running');
    await fleet.control.db.exec(sql`update host set leaving = true`);
    await launcher.hears(a, order, 'ended');
    await until('it is back', async () => (await hosts()).some(({ id }) => id !== old));
    expect(await hosts()).toHaveLength(1);
    await launcher.hears(a, await launcher.order(a, host.id(), engineVersion), 'running');
  });

  it('says nothing about an order that is older than what is recorded', async () => {
    const host = await startHost();
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, order, 'running');
    const other = newId();
    await fleet.control.db.exec(sql`
      update scheduler set order_no = ${order + 5}, host_id = ${other}, phase = 'running' where tenant_id = ${a}`);
    await host.stop();
    expect(await launcher.word(a)).toMatchObject({ order_no: order + 5, host_id: other, phase: 'running' });
    await fleet.control.db.exec(sql`delete from scheduler`);
  });
});

describe('a host that stops', () => {
  type Row = { leaving: boolean; silent_ms: number };
  const row = async (): Promise<Row | undefined> =>
    (
      await fleet.control.db.rows<Row>(sql`
      select leaving, extract(epoch from clock_timestamp() - beat_at)::float8 * 1000 as silent_ms from host`)
    )[0];

  it('says first of all that it leaves, gets nothing more, and beats until its schedulers have stopped', async () => {
    let stops = 0;
    const limits = { ...usualLimits, stopMs: 10_000 };
    const slow = misbehaving({ stop: () => pause(stops++ === 0 ? 3_000 : 0) });
    const host = await startHost({ ...slow, limits });
    await launcher.hears(a, await launcher.order(a, host.id(), engineVersion), 'running');
    const stopping = host.stop();
    await until('it has said so', async () => (await row())?.leaving || undefined);
    const late = await launcher.order(b, host.id(), engineVersion);
    await pause(2_000);
    expect((await row())?.silent_ms).toBeLessThan(1_900);
    await stopping;
    expect(await row()).toBeUndefined();
    const word = await launcher.word(b);
    expect(word?.order_no === late && word.phase === 'running').toBe(false);
    expect(stops).toBe(1);
  });

  it('in the middle of letting go, to stay, is gone for good', async () => {
    const limits = { ...usualLimits, stopMs: 10_000 };
    const host = await startHost({ ...misbehaving({ stop: () => pause(2_500) }), limits, stays: true });
    await launcher.hears(a, await launcher.order(a, host.id(), engineVersion), 'running');
    await fleet.control.db.exec(sql`update host set leaving = true`);
    await pause(1_800);
    // it lets go, and lives
    expect((await row())?.silent_ms).toBeLessThan(1_700);
    await host.stop();
    await pause(300);
    expect(await row()).toBeUndefined();
  });
});

describe('a host in need', () => {
  it('ends when its control database has said nothing for too long', async () => {
    const network = await networkTo(fleet.control.address);
    const rest = { schema: 'control', application: 'test', max: 2, allowPooler: false } as const;
    const pool = openPool({ address: network.address, ...rest, onError: () => {} });
    const host = await startHost({ control: onPool(pool), patience: { aloneMs: 1_500, answerMs: 300 } });
    network.fallSilent();
    expect(await within(5_000, host.ended)).toMatchObject({ asked: false, reason: textWith('no control database') });
    network.close();
    await pool.end();
  });

  it('ends without its control database for too long, and not before', async () => {
    let away = false;
    const control = unreliable(fleet.control.db, () => away);
    const host = await startHost({ control, patience: { aloneMs: 1_500, overMemoryMs: 10_000 } });
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, order, 'running');
    away = true;
    expect(await within(1_000, host.ended)).toBeUndefined();
    expect(await connected(host.id())).not.toEqual([]);
    expect(await host.ended).toMatchObject({ asked: false, reason: textWith('no control database') });
  });

  it('that uses too much memory for too long ends as a lost one: nobody knows whose fault it is', async () => {
    const host = await startHost({ memoryLimit: 1, patience: { aloneMs: 60_000, overMemoryMs: 1_200 } });
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.hears(a, order, 'running');
    expect(await host.ended).toMatchObject({ asked: false, reason: textWith('MiB of memory') });
    await host.stop();
    // no word that its schedulers were stopped, as if all were well
    expect(await launcher.word(a)).toMatchObject({ phase: 'running' });
    const [row] = await fleet.control.db.rows<{ lost: boolean }>(sql`
      select beat_at = '-infinity' as lost from host`);
    expect(row?.lost).toBe(true);
  });
});

describe('a host’s beats', () => {
  it('carry what its schedulers have done, tenant by tenant', async () => {
    const host = await startHost();
    for (const tenant of [a, b])
      await launcher.hears(tenant, await launcher.order(tenant, host.id(), engineVersion), 'running');
    telemetry.emit('fired', { tenant: a, triggers: 3, runs: 2, latenessMs: [4, 80, 70_000] });
    telemetry.emit('caught_up', { tenant: a, triggers: 5, runs: 5 });
    telemetry.emit('retried', { tenant: a, runs: 7 });
    telemetry.emit('leases_lost', { tenant: a, runs: 9 });
    const lateness = { buckets: [1, 0, 0, 1, 0, 0, 0, 0, 0, 1], seconds: 70.084 };
    const done = { fired: 3, caught_up: 5, runs: 7, retries: 7, leases_lost: 9, lateness };
    const tallies = () =>
      fleet.control.db.rows<{ tally: { retries: number } | null }>(sql`
        select tally from scheduler join tenant on tenant.id = tenant_id order by name`);
    await until('it is written', async () => (await tallies())[0]?.tally?.retries === 7 || undefined);
    expect(await tallies()).toMatchObject([{ tally: done }, { tally: { fired: 0 } }]);
  });

  it('of one that says nonsense of itself keep no other’s back', async () => {
    statuses.set(a, { queuedTriggers: 1, nextTriggerId: 'nonsense', nextTriggers: [], ready: true });
    statuses.set(b, { queuedTriggers: 8, nextTriggerId: null, nextTriggers: [], ready: true });
    const host = await startHost();
    for (const tenant of [a, b])
      await launcher.hears(tenant, await launcher.order(tenant, host.id(), engineVersion), 'running');
    const queued = () =>
      fleet.control.db.one<{ queued: number }>(sql`
        select queued_triggers as queued from scheduler where tenant_id = ${b}`);
    await until('it is written', async () => (await queued()).queued === 8 || undefined);
    statuses.clear();
  });

  it('carry of what an engine says only what can be understood', () => {
    const noted: SchedulerStatus[] = [];
    const directory = makeDirectory(fleet.control.db, a, fleet.time, 30_000, (status) => noted.push(status));
    const id = newId();
    const nonsense = { queuedTriggers: 1e99, nextTriggerId: '\0', nextTriggers: [id, 7, '}'], ready: 'no' };
    directory.noteScheduler(nonsense as unknown as SchedulerStatus);
    directory.noteScheduler({} as unknown as SchedulerStatus);
    expect(noted).toEqual([
      { queuedTriggers: 2 ** 31 - 1, nextTriggerId: null, nextTriggers: [id], ready: false },
      { queuedTriggers: 0, nextTriggerId: null, nextTriggers: [], ready: false },
    ]);
  });

  it('carry which triggers fire next and whether runs are ready, and that is known though they are gone', async () => {
    const next = [newId(), newId(), newId()];
    statuses.set(a, { queuedTriggers: 7, nextTriggerId: next[0] ?? null, nextTriggers: next, ready: true });
    const host = await startHost();
    for (const tenant of [a, b])
      await launcher.hears(tenant, await launcher.order(tenant, host.id(), engineVersion), 'running');
    const directoryOf = (tenant: string) => makeDirectory(fleet.control.db, tenant, fleet.time, 30_000);
    const ready = async () =>
      fleet.control.db.rows(sql`select ready from scheduler join tenant on tenant.id = tenant_id order by name`);
    await until('it is written', async () => (await directoryOf(a).nextTriggers()).length > 0 || undefined);
    expect(await ready()).toEqual([{ ready: true }, { ready: false }]);
    await host.stop();
    // a successor does not begin with what this one said
    expect(statuses.has(a)).toBe(false);
    expect(await directoryOf(a).nextTriggers()).toEqual(next);
    expect(await directoryOf(b).nextTriggers()).toEqual([]);
    expect(await directoryOf(newId()).nextTriggers()).toEqual([]);
    statuses.clear();
  });
});

/** A real database that is out of reach when the test says so. */
function unreliable(db: Db, isAway: () => boolean): Db {
  const refuse = async (): Promise<never> => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  };
  return {
    rows: (query) => (isAway() ? refuse() : db.rows(query)),
    one: (query) => (isAway() ? refuse() : db.one(query)),
    maybeOne: (query) => (isAway() ? refuse() : db.maybeOne(query)),
    exec: (query) => (isAway() ? refuse() : db.exec(query)),
    transaction: (work) => (isAway() ? refuse() : db.transaction(work)),
  };
}
