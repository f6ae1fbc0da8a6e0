/** Launchers that take over, hosts that are lost, schedulers that fail. Each test has a stage of its own. */
import { describe, expect } from 'vitest';
import { engineOne, session, type Stage, stageTest as it } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

const silence = ({ control: { db } }: Stage, hostId: string, interval: string) =>
  db.exec(sql`update host set beat_at = clock_timestamp() - ${interval}::interval where id = ${hostId}`);

describe.concurrent('launcher that takes over', () => {
  it('a new launcher adopts hosts and orders as they are, without restarts', async ({ stage }) => {
    const host = await stage.host();
    const tenants = [await stage.tenant('a'), await stage.tenant('b'), await stage.tenant('c', { desired: 'off' })];
    const first = await stage.launch();
    for (const tenant of tenants.slice(0, 2)) await stage.becomes(tenant, 'STARTED');
    await first.stop();
    const launches = () =>
      stage.control.db.rows(sql`
        select tenant_id, state, reason, host_id, order_no, ordered, failures, changed_at from launch order by tenant_id`);
    const before = await launches();
    expect([...host.running.values()]).toEqual([1, 1]);
    await stage.launch();
    await until('the next one is active', async () => {
      const row = await stage.control.db.one<{ epoch: number }>(sql`select epoch from launcher_lease`);
      return row.epoch === 2 || undefined;
    });
    // it has taken turns by now, because it has handled a message
    const message = await stage.send(tenants[2] ?? { id: '', name: '', address: stage.control.address }, 'stop');
    expect(await stage.outcome(message)).toMatchObject({ outcome: 'stopped' });
    expect(await launches()).toEqual(before);
    expect([...host.running.values()]).toEqual([1, 1]);
  });

  it('a new launcher handles messages that were sent while none was active', async ({ stage }) => {
    const host = await stage.host();
    const [stays, goes] = [await stage.tenant('stays'), await stage.tenant('goes')];
    const first = await stage.launch();
    for (const tenant of [stays, goes]) await stage.becomes(tenant, 'STARTED');
    await first.stop();
    const ids = [
      await stage.send(goes, 'restart'),
      await stage.send(goes, 'stop'),
      await stage.send(stays, 'restart'),
      await stage.send({ ...stays, id: newId() }, 'start'),
    ];
    await stage.launch();
    const outcomes = await Promise.all(ids.map((id) => stage.outcome(id)));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['superseded', 'stopped', 'started', 'gone']);
    expect(await stage.view(goes)).toMatchObject({ state: 'DISABLED', code: 'stopped_by_user' });
    expect(await stage.view(stays)).toMatchObject({ state: 'STARTED', order_no: 2 });
    expect([...host.running.keys()]).toEqual([stays.id]);
  });

  it('a new launcher ignores expired messages, and acts on the desired state', async ({ stage }) => {
    await stage.host();
    const tenant = await stage.tenant('a');
    const id = await stage.send(tenant, 'stop');
    await stage.control.db.exec(sql`update tenant set desired = 'on'`);
    await stage.control.db.exec(sql`update message set deadline = now() - interval '1 second'`);
    await stage.launch();
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'timed_out' });
    await stage.becomes(tenant, 'STARTED');
  });
});

describe.concurrent('lost host', () => {
  it('a lost host is fenced and deleted; its tenants are suspected, and move to others', async ({ stage }) => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await stage.launch({ embedded: true });
    await stage.becomes(tenant, 'STARTED');
    const itsOwn = await session(tenant.address);
    await itsOwn.query(`set application_name to 'millrace host ${host.id.slice(-12)} 1.0.0 a'`);
    const others = await session(tenant.address);
    await others.query(`set application_name to 'millrace host ${newId().slice(-12)} 1.0.0 a'`);
    await host.freeze();
    await silence(stage, host.id, '6 seconds');
    expect(await stage.becomes(tenant, 'DISABLED', 'crashed')).toMatchObject({
      suspicion: 1,
      failures: 1,
      host_id: null,
    });
    expect((await stage.view(tenant))?.reason).toContain('its host was lost');
    expect(stage.killed).toEqual([host.pid]);
    expect(await stage.control.db.rows(sql`select id from host`)).toEqual([]);
    await expect(itsOwn.query('select 1')).rejects.toThrow();
    await others.query('select 1');
    await others.end();
    const next = await stage.host();
    expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ host_id: next.id, order_no: 2, suspicion: 1 });
    // a late report of the lost host on its order changes nothing
    await host.end(tenant.id, { code: 'crashed', reason: 'late' });
    await stage.turns(1);
    expect(await stage.view(tenant)).toMatchObject({ state: 'STARTED', order_no: 2 });
  });

  it('a launcher that was not awake itself does not declare a host lost', async ({ stage }) => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await host.freeze();
    await silence(stage, host.id, '1 hour');
    await stage.launch();
    // a turn has passed, and the silent host counts as alive
    await until('it gets the tenant', async () => (await stage.view(tenant))?.host_id === host.id || undefined);
    await host.thaw();
    expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ host_id: host.id, suspicion: 0 });
  });

  it('a host that beats but ignores its orders counts as lost', async ({ stage }) => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await stage.launch({ embedded: true });
    await stage.becomes(tenant, 'STARTED');
    host.letsGo = false;
    const id = await stage.send(tenant, 'stop');
    await stage.becomes(tenant, 'DISABLED', 'stopping');
    await stage.control.db.exec(sql`update launch set changed_at = changed_at - interval '31 seconds'`);
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'stopped' });
    expect(stage.killed).toEqual([host.pid]);
  });

  it('tenants of a host that has left in order start elsewhere at once, in their slots', async ({ stage }) => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await stage.launch();
    await stage.becomes(tenant, 'STARTED');
    await stage.limit(2);
    const waiting = await stage.tenant('waiting');
    await stage.becomes(waiting, 'ENABLED', 'no_slot');
    await host.freeze();
    const next = await stage.host();
    await stage.control.db.exec(sql`delete from host where id = ${host.id}`);
    await until('it runs elsewhere', async () => (await stage.view(tenant))?.host_id === next.id || undefined);
    expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ suspicion: 0, failures: 0, order_no: 2 });
    expect(await stage.view(waiting)).toMatchObject({ state: 'ENABLED', code: 'no_slot' });
  });
});

describe.concurrent('hosts', () => {
  it('the launcher requests one host for several tenants, and not again while it is starting', async ({ stage }) => {
    for (const name of ['a', 'b', 'c']) await stage.tenant(name);
    const tenant = await stage.tenant('d');
    await stage.launch();
    expect(await stage.becomes(tenant, 'ALLOCATED', 'starting')).toBeDefined();
    await until('it waits for one', async () => (await stage.view(tenant))?.reason?.includes('no host') || undefined);
    await stage.turns(3);
    expect(stage.spawned).toEqual([engineOne]);
    const host = await stage.host();
    await stage.becomes(tenant, 'STARTED');
    expect(host.running.size).toBe(4);
    expect(stage.spawned).toHaveLength(1);
  });

  it('hosts that end before they register are reported and retried after a pause; meanwhile tenants share a host', async ({
    stage,
  }) => {
    const asked: number[] = [];
    const hosts = {
      spawn(_: string, onEnd: (how: string) => void) {
        asked.push(performance.now());
        setTimeout(() => onEnd('exit 1'), 10);
        return 99_999_999;
      },
      kill: () => {},
      fate: () => undefined,
    };
    const tenant = await stage.tenant('a');
    await stage.launch({ hosts });
    const reason = await until('it was tried three times', async () => {
      const view = await stage.view(tenant);
      return view?.reason?.includes('3 times') ? view.reason : undefined;
    });
    expect(reason).toBe('starting: processes for its host ended before they registered (exit 1, 3 times)');
    const [first = 0, second = 0, third = 0] = asked;
    expect([second - first >= 800, third - second >= 1_600, asked.length]).toEqual([true, true, 3]);
    const host = await stage.host();
    await stage.becomes(tenant, 'STARTED');
    await stage.control.db.exec(sql`update launch set suspicion = 3`);
    const other = await stage.tenant('b');
    // while no host is requested, and after the requested one has ended, the suspect shares its host
    await stage.becomes(other, 'STARTED');
    expect(host.running.size).toBe(2);
  });

  it('hosts without a tenant are dismissed after a while, except the last one of the running release', async ({
    stage,
  }) => {
    const [one, other, old] = [await stage.host(), await stage.host(), await stage.host('0.9.0')];
    await stage.control.db.exec(sql`update host set on_demand = true`);
    const tenant = await stage.tenant('a');
    await stage.launch({ idleHostMs: 1 });
    const { host_id: taken } = await stage.becomes(tenant, 'STARTED');
    const leaving = () => stage.control.db.rows<{ id: string }>(sql`select id from host where leaving order by id`);
    const spare = taken === one.id ? other.id : one.id;
    await until('two are sent away', async () => (await leaving()).length === 2 || undefined);
    expect(await leaving()).toEqual([{ id: old.id }, { id: spare }].toSorted((a, b) => (a.id < b.id ? -1 : 1)));
    await stage.send(tenant, 'stop');
    await stage.becomes(tenant, 'DISABLED', 'stopped_by_user');
    await stage.turns(3);
    expect((await leaving()).map(({ id }) => id)).not.toContain(taken);
  });

  it('a host with a tenant is never dismissed, though another host could run its tenant', async ({ stage }) => {
    const hosts = [await stage.host(), await stage.host(), await stage.host()];
    const tenants = [await stage.tenant('a'), await stage.tenant('b')];
    await stage.launch({ idleHostMs: 1 });
    for (const tenant of tenants) await stage.becomes(tenant, 'STARTED');
    await stage.control.db.exec(sql`update launch set suspicion = 3`);
    for (const tenant of tenants)
      expect(await stage.outcome(await stage.send(tenant, 'restart'))).toMatchObject({ outcome: 'started' });
    const placed = await Promise.all(tenants.map((tenant) => stage.becomes(tenant, 'STARTED')));
    expect(new Set(placed.map(({ host_id }) => host_id)).size).toBe(2);
    await stage.control.db.exec(sql`update host set on_demand = true`);
    await stage.control.db.exec(sql`update launch set changed_at = changed_at - interval '601 seconds'`);
    await until('they are trusted', async () => {
      const views = await Promise.all(tenants.map((tenant) => stage.view(tenant)));
      return views.every((view) => view?.suspicion === 0) || undefined;
    });
    await stage.turns(3);
    const leaving = await stage.control.db.rows<{ id: string }>(sql`select id from host where leaving`);
    const empty = hosts.map(({ id }) => id).filter((id) => !placed.some(({ host_id }) => host_id === id));
    expect(leaving.map(({ id }) => id)).toEqual(empty);
    for (const [i, tenant] of tenants.entries()) expect((await stage.view(tenant))?.order_no).toBe(placed[i]?.order_no);
  });

  it('the number of hosts stays within its limit, even with suspects', async ({ stage }) => {
    const host = await stage.host();
    const tenants = [await stage.tenant('a'), await stage.tenant('b')];
    const launcher = await stage.launch({ mostHosts: 1 });
    for (const tenant of tenants) await stage.becomes(tenant, 'STARTED');
    await stage.control.db.exec(sql`update launch set suspicion = 9`);
    for (const tenant of tenants)
      expect(await stage.outcome(await stage.send(tenant, 'restart'))).toMatchObject({ outcome: 'started' });
    expect(host.running.size).toBe(2);
    expect(stage.spawned).toEqual([]);
    await launcher.stop();
  });

  it('leaving hosts get no tenants', async ({ stage }) => {
    const [leaving, staying] = [await stage.host(), await stage.host()];
    await stage.control.db.exec(sql`update host set leaving = true where id = ${leaving.id}`);
    const tenant = await stage.tenant('a');
    await stage.launch();
    expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ host_id: staying.id });
  });

  it('a tenant gets its own host, also if that is requested while it runs', async ({ stage }) => {
    const [one, other] = [await stage.host(), await stage.host()];
    await stage.control.db.exec(sql`update host set leaving = true where id = ${other.id}`);
    const [a, b] = [await stage.tenant('a'), await stage.tenant('b')];
    await stage.launch();
    for (const tenant of [a, b]) expect(await stage.becomes(tenant, 'STARTED')).toMatchObject({ host_id: one.id });
    await stage.control.db.exec(sql`update host set leaving = false where id = ${other.id}`);
    await stage.control.db.exec(sql`update tenant set own_host = true where id = ${b.id}`);
    await until('it has moved', async () => (await stage.view(b))?.host_id === other.id || undefined);
    await stage.becomes(b, 'STARTED');
    expect(await stage.view(a)).toMatchObject({ host_id: one.id, order_no: 1 });
  });
});

describe.concurrent('scheduler that fails', () => {
  it('a scheduler that crashes is retried after a pause, and its failures get one event', async ({ stage }) => {
    const host = await stage.host();
    host.obey = () => ({ code: 'crashed', reason: 'boom' });
    const tenant = await stage.tenant('a');
    await stage.launch();
    const first = await stage.becomes(tenant, 'DISABLED', 'crashed');
    expect([first.reason, first.retry_at]).toEqual(['crashed: boom', expect.any(Date)]);
    await until('it was tried a third time', async () => ((await stage.view(tenant))?.failures ?? 0) >= 3 || undefined);
    const events = await stage.control.db.rows<{ code: string }>(sql`
      select body::json->>'code' as code from event where type = 'tenant.state' order by seq`);
    expect(events.map(({ code }) => code)).toEqual(['starting', 'crashed']);
    host.obey = () => 'run';
    await stage.becomes(tenant, 'STARTED');
    await stage.control.db.exec(sql`update launch set changed_at = changed_at - interval '61 seconds'`);
    await until('it is forgiven', async () => (await stage.view(tenant))?.failures === 0 || undefined);
  });

  it('a tenant whose scheduler finds another version is inspected again, in its slot', async ({ stage }) => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await stage.launch();
    await stage.becomes(tenant, 'STARTED');
    await host.end(tenant.id, { code: 'starting', reason: 'its version is 2.0.0' });
    await until('it was started anew', async () => {
      const view = await stage.view(tenant);
      return (view?.state === 'STARTED' && view.order_no === 2) || undefined;
    });
  });

  it('a tenant that another scheduler blocks shows that reason while it waits for its retry', async ({ stage }) => {
    const host = await stage.host();
    const reason = 'another scheduler of this tenant is still running (backend 123)';
    host.obey = () => ({ code: 'starting', reason });
    const tenant = await stage.tenant('a');
    await stage.launch();
    const waitUntil = (at: string) =>
      stage.control.db.exec(sql`update launch set retry_at = ${at}::timestamptz where retry_at is not null`);
    await until('it waits, with that reason, and turns do not change it', async () => {
      await waitUntil('infinity');
      await stage.turns(1);
      const view = await stage.view(tenant);
      return (view?.state === 'ALLOCATED' && view.reason === `starting: ${reason}`) || undefined;
    });
    host.obey = () => 'run';
    await waitUntil('now');
    await stage.becomes(tenant, 'STARTED');
  });

  it('a tenant without an engine here or a host elsewhere waits for its engine', async ({ stage }) => {
    const have = new Set<string>();
    const tenant = await stage.tenant('a');
    const engines = {
      usable: async (version: string) =>
        have.has(version)
          ? ({ ok: true } as const)
          : ({ ok: false, detail: `${version} is not installed here` } as const),
      diagnose: async () => undefined,
    };
    await stage.launch({ engines });
    const id = await stage.send(tenant, 'start');
    expect(await stage.outcome(id)).toMatchObject({
      outcome: 'no_engine',
      detail: `no engine: ${engineOne} is not installed here`,
    });
    have.add(engineOne);
    await until('a host is asked for', () => stage.spawned.length > 0 || undefined);
    await stage.host();
    await stage.becomes(tenant, 'STARTED');
  });

  it('a tenant whose database does not answer is retried, and does not delay others', async ({ stage }) => {
    await stage.host();
    const [deaf, other] = [await stage.tenant('deaf'), await stage.tenant('other')];
    await stage.launch({
      addressOf: (row) => (row.name === 'deaf' ? { url: 'postgres://x@127.0.0.1:1/x', database: 'x' } : other.address),
    });
    await stage.becomes(other, 'STARTED');
    const view = await stage.becomes(deaf, 'DISABLED', 'unreachable');
    expect(view.reason).toMatch(/^unreachable: its database cannot be reached/);
    expect(view.failures).toBeGreaterThan(0);
  });

  it('a scheduler that is stopped before its host has read the order does not delay its tenant', async ({ stage }) => {
    const host = await stage.host();
    host.obey = () => 'nothing';
    const tenant = await stage.tenant('a');
    await stage.launch();
    await until('it is ordered', async () => (await stage.view(tenant))?.ordered || undefined);
    host.letsGo = false;
    const id = await stage.send(tenant, 'restart');
    await stage.becomes(tenant, 'ALLOCATED', 'stopping');
    host.obey = () => 'run';
    host.letsGo = true;
    const before = performance.now();
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'started' });
    expect(performance.now() - before).toBeLessThan(5_000);
    expect(await stage.view(tenant)).toMatchObject({ order_no: 2 });
  });
});
