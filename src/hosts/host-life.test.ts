/** Heartbeats of a host, its behaviour without launcher, database or memory, and how it ends. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import type { Fleet } from '../../test/harness/fleet.ts';
import { type Hosting, makeHosting, makeMisbehavingEngine } from '../../test/harness/hosting.ts';
import { networkTo } from '../../test/harness/network.ts';
import type { PlayedLauncher } from '../../test/harness/played-launcher.ts';
import { until } from '../../test/harness/until.ts';
import type { SchedulerStatus } from '../contract/context.ts';
import { engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { pause, within } from '../kernel/service.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { onDatabase } from '../postgres/address.ts';
import { openClient } from '../postgres/pool/client.ts';
import { withClient } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import { openPool } from '../postgres/pool/pool.ts';
import { makeDirectory } from '../control/directory.ts';
import type { Host, HostOptions } from './host.ts';
import { instantsCaughtUp, triggersFired, leasesLost, retried } from '../scheduler/telemetry.ts';
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

/** A full garbage collection, as V8 does by itself now and then. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

const connected = async (hostId: string): Promise<string[]> => {
  const rows = await fleet.control.db.rows<{ name: string }>(sql`
    select application_name as name from pg_stat_activity
     where application_name like ${`millrace host ${hostId.slice(-12)} %`}`);
  return rows.map(({ name }) => name);
};

describe('stopping host', () => {
  type Row = { leaving: boolean; beat_ms: number };
  const row = async (): Promise<Row | undefined> =>
    (
      await fleet.control.db.rows<Row>(sql`
      select leaving, extract(epoch from beat_at)::float8 * 1000 as beat_ms from host`)
    )[0];
  /** Waits for two more beats, because one may already have been on its way. */
  const beatsOn = async (): Promise<void> => {
    for (let last = (await row())?.beat_ms, n = 0; n < 2; n++)
      last = await until('it beats', async () => {
        const { beat_ms: next = 0 } = (await row()) ?? {};
        return next > (last ?? 0) ? next : undefined;
      });
  };
  /** Schedulers that stop when the test calls `letGo`. */
  const gated = () => {
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    const seen = { stops: 0 };
    const stop = (): Promise<void> => (seen.stops++, gate);
    return { ...makeMisbehavingEngine({ stop }), seen, letGo: () => letGo() };
  };
  const limits = { ...usualLimits, stopMs: 60_000 };

  it('a stopping host marks itself as leaving, gets no more tenants, and beats until its schedulers stop', async () => {
    const { seen, letGo, ...slow } = gated();
    const host = await startHost({ ...slow, limits });
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
    const stopping = host.stop();
    await until('it is marked as leaving', async () => (await row())?.leaving || undefined);
    const late = await launcher.order(b, host.id(), engineVersion);
    await beatsOn();
    letGo();
    await stopping;
    expect(await row()).toBeUndefined();
    const word = await launcher.readReport(b);
    expect(word?.order_no === late && word.phase === 'running').toBe(false);
    expect(seen.stops).toBe(1);
  });

  it('a host that is stopped while it lets go of its tenants does not register again', async () => {
    const { seen, letGo, ...slow } = gated();
    const host = await startHost({ ...slow, limits, stays: true });
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
    await fleet.control.db.exec(sql`update host set leaving = true`);
    await until('it lets go', () => seen.stops === 1);
    await beatsOn();
    const stopping = host.stop();
    letGo();
    await stopping;
    await pause(300);
    expect(await row()).toBeUndefined();
  });
});

describe('tenant that a lost host still holds', () => {
  /** A connection of the lost host. On a server other than the launcher's, no launcher ends such connections. */
  const held = (by: string): Promise<Client> => {
    const address = onDatabase(fleet.control.address, fleet.tenants[0]?.row.database ?? '');
    const application = `millrace host ${by.slice(-12)} ${engineVersion} a`;
    const rest = { address, schema: 'millrace', application, allowPooler: false, connectMs: 5_000 } as const;
    return openClient({ ...rest, signal: new AbortController().signal });
  };
  const limits = { ...usualLimits, lockMs: 300 };
  const lockedBy = async (by: string): Promise<Client> => {
    const holder = await held(by);
    await holder.query('select pg_advisory_lock($1, $2)', [...locks.singleton]);
    return holder;
  };
  /** Records that this host ran the tenant last, and that another host has tried since. */
  const lastRunBy = (by: string) =>
    fleet.control.db.exec(sql`
      insert into scheduler (tenant_id, id, host_id, ran_on, order_no, phase, engine, changed_at, beat_at)
      values (${a}, ${newId()}, ${newId()}, ${by}, 0, 'ended', '1', now(), now())
      on conflict (tenant_id) do update set host_id = excluded.host_id, ran_on = excluded.ran_on`);

  it('a new host takes the tenant from the lost host, on any server', async () => {
    const lost = newId();
    const [holder, other] = [await lockedBy(lost), await held(lost)];
    const ended = Promise.all([holder, other].map((client) => new Promise((resolve) => client.once('end', resolve))));
    await lastRunBy(lost);
    const host = await startHost({ limits });
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
    await ended;
  });

  it('a new host does not take a tenant from a host that is alive or that this installation does not know', async () => {
    const alive = await startHost();
    for (const by of [alive.id(), newId()]) {
      const holder = await lockedBy(by);
      await lastRunBy(alive.id());
      const host = await startHost({ limits });
      const order = await launcher.order(a, host.id(), engineVersion);
      const word = await launcher.waitForReport(a, order, 'ended');
      expect(word).toMatchObject({ code: 'starting', reason: textWith('another scheduler') });
      await holder.end();
    }
  });
});

describe('host without launcher, control database or memory', () => {
  it('a host releases a tenant for a migration by itself if no launcher is active or can see the migration', async () => {
    const { database } = await fleet.control.db.one<{ database: string }>(sql`
      select database from tenant where id = ${a}`);
    const limits = { ...usualLimits, versionEveryMs: 50 };
    const lease = (holder: string | null) =>
      fleet.control.db.exec(sql`update launcher_lease set holder = ${holder}, renewed_at = 'infinity'`);
    const migrate = async (more: Partial<HostOptions>, withinMs = 20_000): Promise<boolean> => {
      const host = await startHost({ ...more, limits });
      const order = await launcher.order(a, host.id(), engineVersion);
      await launcher.waitForReport(a, order, 'running');
      return withClient(onDatabase(fleet.control.address, database), async (client) => {
        const granted = client.query('begin; select millrace.begin_migration()').then(() => true);
        granted.catch(() => {});
        const isGranted = (await within(withinMs, granted)) ?? false;
        if (isGranted) expect(await launcher.waitForReport(a, order, 'ended')).toMatchObject({ code: 'starting' });
        else await hosting.stopHosts();
        await granted;
        return isGranted;
      });
    };
    expect(await migrate({}), 'there is no launcher').toBe(true);
    await hosting.stopHosts();
    await lease(newId());
    expect(await migrate({ isElsewhere: () => true })).toBe(true);
    await hosting.stopHosts();
    expect(await migrate({}, 2_500), 'an active launcher would withdraw the order').toBe(false);
    await lease(null);
  });

  it('a host ends when its control database has not answered for too long', async () => {
    const network = await networkTo(fleet.control.address);
    const rest = { schema: 'control', application: 'test', max: 2, allowPooler: false } as const;
    const pool = openPool({ address: network.address, ...rest, onError: () => {} });
    const host = await startHost({ control: onPool(pool), patience: { aloneMs: 1_500, answerMs: 300 } });
    network.fallSilent();
    expect(await within(20_000, host.ended)).toMatchObject({ asked: false, reason: textWith('no control database') });
    network.close();
    await pool.end();
  });

  it('a host ends after too long without its control database, and not before', async () => {
    let away = false;
    const control = unreliable(fleet.control.db, () => away);
    const host = await startHost({ control, patience: { aloneMs: 5_000, overMemoryMs: 60_000 } });
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, order, 'running');
    away = true;
    expect(await within(1_000, host.ended)).toBeUndefined();
    expect(await connected(host.id())).not.toEqual([]);
    expect(await host.ended).toMatchObject({ asked: false, reason: textWith('no control database') });
  });

  it('a host that uses too much memory for too long ends as lost, because the tenant at fault is unknown', async () => {
    const host = await startHost({ memoryLimit: 1, patience: { aloneMs: 60_000, overMemoryMs: 1_200 } });
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, order, 'running');
    expect(await host.ended).toMatchObject({ asked: false, reason: textWith('MiB of memory') });
    await host.stop();
    // it does not report its schedulers as stopped in an orderly way
    expect(await launcher.readReport(a)).toMatchObject({ phase: 'running' });
    const [row] = await fleet.control.db.rows<{ lost: boolean }>(sql`
      select beat_at = '-infinity' as lost from host`);
    expect(row?.lost).toBe(true);
  });
});

describe('host whose heap is over its limit', () => {
  it('a host whose heap is over its limit ends as lost after a full garbage collection, and reports why', async () => {
    const host = await startHost({ heapLimit: 1 });
    const order = await launcher.order(a, host.id(), engineVersion);
    await launcher.waitForReport(a, order, 'running');
    collectGarbage();
    expect(await host.ended).toMatchObject({ asked: false, reason: textWith('it ran out of memory: its heap holds') });
    expect(await launcher.readReport(a)).toMatchObject({ phase: 'running', reason: textWith('it ran out of memory') });
  });
});

describe('beats of a host', () => {
  it('beats carry what the schedulers have done, per tenant', async () => {
    const host = await startHost();
    for (const tenant of [a, b])
      await launcher.waitForReport(tenant, await launcher.order(tenant, host.id(), engineVersion), 'running');
    triggersFired.emit(hosting.telemetry, { tenant: a, triggers: 3, runs: 2, latenessMs: [4, 80, 70_000] });
    instantsCaughtUp.emit(hosting.telemetry, { tenant: a, triggers: 5, runs: 5 });
    retried.emit(hosting.telemetry, { tenant: a, runs: 7 });
    leasesLost.emit(hosting.telemetry, { tenant: a, runs: 9 });
    const lateness = { buckets: [1, 0, 0, 1, 0, 0, 0, 0, 0, 1], seconds: 70.084 };
    const done = { fired: 3, caught_up: 5, runs: 7, retries: 7, leases_lost: 9, lateness };
    const tallies = () =>
      fleet.control.db.rows<{ tally: { retries: number } | null }>(sql`
        select tally from scheduler join tenant on tenant.id = tenant_id order by name`);
    await until('it is written', async () => (await tallies())[0]?.tally?.retries === 7 || undefined);
    expect(await tallies()).toMatchObject([{ tally: done }, { tally: { fired: 0 } }]);
  });

  it('an event that SQL publishes is in the bus log once it has committed, without any sweep', async () => {
    const host = await startHost();
    await launcher.waitForReport(a, await launcher.order(a, host.id(), engineVersion), 'running');
    const tenant = fleet.tenants.find(({ row }) => row.id === a);
    const address = onDatabase(fleet.control.address, tenant?.row.database ?? '');
    await withClient(address, async (client) => {
      await client.query("select millrace.publish('orders', 'update', 'https://example.com/1')");
      // the clock stands still
      await until('it is copied', async () => {
        const { rows } = await client.query<{ n: number }>('select count(*)::integer as n from millrace.bus_event');
        return rows[0]?.n === 1 || undefined;
      });
    });
  });

  it('a beat that the database rejects does not hold up the beats of other schedulers', async () => {
    hosting.statuses.set(a, { queuedTriggers: 1, nextTriggerId: 'nonsense', nextTriggers: [], ready: true });
    hosting.statuses.set(b, { queuedTriggers: 8, nextTriggerId: null, nextTriggers: [], ready: true });
    const host = await startHost();
    for (const tenant of [a, b])
      await launcher.waitForReport(tenant, await launcher.order(tenant, host.id(), engineVersion), 'running');
    const queued = () =>
      fleet.control.db.one<{ queued: number }>(sql`
        select queued_triggers as queued from scheduler where tenant_id = ${b}`);
    await until('it is written', async () => (await queued()).queued === 8 || undefined);
    hosting.statuses.clear();
  });

  it('beats drop values of an engine’s status that are not valid', () => {
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

  it('beats carry the next triggers and whether runs are ready, and both stay known after the host has gone', async () => {
    const next = [newId(), newId(), newId()];
    hosting.statuses.set(a, { queuedTriggers: 7, nextTriggerId: next[0] ?? null, nextTriggers: next, ready: true });
    const host = await startHost();
    for (const tenant of [a, b])
      await launcher.waitForReport(tenant, await launcher.order(tenant, host.id(), engineVersion), 'running');
    const directoryOf = (tenant: string) => makeDirectory(fleet.control.db, tenant, fleet.time, 30_000);
    const ready = async () =>
      fleet.control.db.rows(sql`select ready from scheduler join tenant on tenant.id = tenant_id order by name`);
    await until('it is written', async () => (await directoryOf(a).nextTriggers()).length > 0 || undefined);
    expect(await ready()).toEqual([{ ready: true }, { ready: false }]);
    await host.stop();
    // a successor does not begin with this scheduler's status
    expect(hosting.statuses.has(a)).toBe(false);
    expect(await directoryOf(a).nextTriggers()).toEqual(next);
    expect(await directoryOf(b).nextTriggers()).toEqual([]);
    expect(await directoryOf(newId()).nextTriggers()).toEqual([]);
    hosting.statuses.clear();
  });
});

/** A real database that is unreachable while `isAway` returns true. */
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
