import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet, setDesired } from '../../test/harness/fleet.ts';
import { until } from '../../test/harness/until.ts';
import type { SchedulerStatus } from '../contract/engine.ts';
import { engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { makeTelemetry } from '../kernel/telemetry.ts';
import { onDatabase } from '../postgres/address.ts';
import { makeDirectory } from './directory.ts';
import { makeHost } from './host.ts';

let fleet: Fleet;
const running: Service[] = [];
const telemetry = makeTelemetry(() => {});
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((host) => host.stop()));
});
afterAll(() => fleet.close());

const statuses = new Map<string, SchedulerStatus>();

async function startHost(): Promise<Service> {
  const host = makeHost({
    control: fleet.control.db,
    loader: fleet.newLoader(),
    addressOf: (row) => onDatabase(fleet.control.address, row.database),
    statuses,
    time: fleet.time,
    telemetry,
    version: engineVersion,
    allowPooler: false,
    log: silent,
  });
  running.push(host);
  await host.start();
  return host;
}
type HostRow = { id: string; beat_at: Date; pid: number; engine: string };
const hosts = () => fleet.control.db.rows<HostRow>(sql`select id, beat_at, pid, engine from host`);
const states = async (): Promise<Record<string, string>> => {
  const rows = await fleet.control.db.rows<{ name: string; state: string; host_id: string | null; beat_at: Date }>(sql`
    select tenant.name, state, host_id, beat_at from scheduler join tenant on tenant.id = tenant_id order by 1`);
  return Object.fromEntries(rows.map((row) => [row.name, row.state]));
};
const become = (wanted: Record<string, string>) =>
  until(JSON.stringify(wanted), async () => JSON.stringify(await states()) === JSON.stringify(wanted) || undefined);

describe('a host', () => {
  it('registers, runs a scheduler for each tenant that is on, and beats', async () => {
    await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    expect(await hosts()).toMatchObject([{ pid: process.pid, engine: engineVersion }]);
    fleet.time.advance(60_000);
    await until('it has beaten', async () => (await hosts())[0]?.beat_at.getTime() === fleet.time.now() || undefined);
    await until('its schedulers, too', async () => {
      const rows = await fleet.control.db.rows<{ beat_at: Date }>(sql`select beat_at from scheduler`);
      return rows.every((row) => row.beat_at.getTime() === fleet.time.now()) || undefined;
    });
  });

  it('writes down what its schedulers have done, tenant by tenant', async () => {
    const [a] = fleet.tenants;
    const tenant = a?.row.id ?? '';
    await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    telemetry.emit('fired', { tenant, triggers: 3, runs: 2, latenessMs: [4, 80, 70_000] });
    telemetry.emit('caught_up', { tenant, triggers: 5, runs: 5 });
    telemetry.emit('retried', { tenant, runs: 7 });
    telemetry.emit('leases_lost', { tenant, runs: 9 });
    const buckets = [1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    const done = {
      fired: 3,
      caught_up: 5,
      runs: 7,
      retries: 7,
      leases_lost: 9,
      lateness: { buckets, seconds: 70.084 },
    };
    const tallies = () =>
      fleet.control.db.rows<{ tally: { retries: number } | null }>(sql`
        select tally from scheduler join tenant on tenant.id = tenant_id order by name`);
    await until('it is written', async () => (await tallies())[0]?.tally?.retries === 7 || undefined);
    expect(await tallies()).toMatchObject([{ tally: done }, { tally: { fired: 0 } }]);
  });

  it('writes down which triggers its schedulers fire next, and that is known though they are gone', async () => {
    const [a, b] = fleet.tenants.map((tenant) => tenant.row.id);
    const next = [newId(), newId(), newId()];
    statuses.set(a ?? '', { queuedTriggers: 7, nextTriggerId: next[0] ?? null, nextTriggers: next });
    const host = await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    const directoryOf = (tenant = '') => makeDirectory(fleet.control.db, tenant, fleet.time, 30_000);
    await until('it is written', async () => (await directoryOf(a).nextTriggers()).length > 0 || undefined);
    await host.stop();
    expect(await directoryOf(a).nextTriggers()).toEqual(next);
    expect(await directoryOf(b).nextTriggers()).toEqual([]);
    expect(await directoryOf(newId()).nextTriggers()).toEqual([]);
    statuses.clear();
  });

  it('is gone when it has stopped, and says that its schedulers are', async () => {
    const host = await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    await host.stop();
    expect(await hosts()).toEqual([]);
    expect(await states()).toEqual({ a: 'ENABLED', b: 'ENABLED' });
  });

  it('stops the scheduler of a tenant that is turned off, and starts it when it is on again', async () => {
    const [a] = fleet.tenants;
    await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    await setDesired(fleet.control, a?.row.id ?? '', 'off');
    await become({ a: 'ENABLED', b: 'STARTED' });
    await setDesired(fleet.control, a?.row.id ?? '', 'on');
    await become({ a: 'STARTED', b: 'STARTED' });
  });

  it('that was written off registers again', async () => {
    await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    await fleet.control.db.exec(sql`delete from host`);
    const [host] = await until('it is back', async () => {
      const rows = await hosts();
      return rows.length === 1 ? rows : undefined;
    });
    await until('its schedulers are its own again', async () => {
      const owners = await fleet.control.db.rows<{ host_id: string | null }>(
        sql`select distinct host_id from scheduler`,
      );
      return (owners.length === 1 && owners[0]?.host_id === host?.id) || undefined;
    });
  });

  it('that waits for another’s schedulers does not overwrite what that one says', async () => {
    await startHost();
    await become({ a: 'STARTED', b: 'STARTED' });
    const [first] = await hosts();
    await startHost();
    await until('it is registered', async () => (await hosts()).length === 2 || undefined);
    fleet.time.advance(1_000);
    await until(
      'it has looked',
      async () => (await hosts()).every((row) => row.beat_at.getTime() === fleet.time.now()) || undefined,
    );
    expect(await states()).toEqual({ a: 'STARTED', b: 'STARTED' });
    const owners = await fleet.control.db.rows(sql`select distinct host_id from scheduler`);
    expect(owners).toEqual([{ host_id: first?.id }]);
    await running.shift()?.stop();
    await until('it takes over', async () => {
      const [owner] = await fleet.control.db.rows<{ host_id: string | null }>(
        sql`select distinct host_id from scheduler where state = 'STARTED'`,
      );
      return (owner !== undefined && owner.host_id !== null && owner.host_id !== first?.id) || undefined;
    });
  });
});
