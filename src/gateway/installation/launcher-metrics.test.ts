import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { launcherMetrics, readLauncherFigures } from './launcher-metrics.ts';

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

const scrape = async (): Promise<string[]> =>
  launcherMetrics(await readLauncherFigures(control.db, { slotLimit: 64, workerLifeMs: 30_000 })).split('\n');

interface LaunchFacts {
  readonly state: string;
  readonly code?: string;
  readonly failures?: number;
  readonly hostId?: string;
}

async function tenant(name: string, { state, code, failures = 0, hostId }: LaunchFacts): Promise<string> {
  const id = newId();
  await control.db.exec(sql`
    insert into tenant (id, name, database, desired, created_at) values (${id}, ${name}, ${name}, 'on', now())`);
  await control.db.exec(sql`
    insert into launch (tenant_id, state, code, reason, host_id, order_no, ordered, ending, failures, suspicion, changed_at)
    values (${id}, ${state}, ${code}, ${code}, ${hostId}, 5, ${hostId !== undefined}, false, ${failures}, 0, now())`);
  const granted = state === 'STARTED' ? new Date() : null;
  await control.db.exec(sql`
    insert into slot (id, kind, tenant_id, reason, asked_at, granted_at)
    values (${newId()}, 'scheduler', ${id}, 'scheduler', now(), ${granted})`);
  return id;
}

async function host(beatAt: string, leaving: boolean): Promise<string> {
  const id = newId();
  await control.db.exec(sql`
    insert into host (id, machine, pid, engine, memory, on_demand, leaving, started_at, beat_at)
    values (${id}, 'm', 1, '1', 1, true, ${leaving}, now(), ${beatAt}::timestamptz)`);
  return id;
}

it('metrics count tenants by state and reason, slots, hosts and launchers', async () => {
  expect(await scrape()).toContain('millrace_launchers{state="active"} 0');
  await tenant('runs', { state: 'STARTED', hostId: await host('infinity', false) });
  await tenant('fails "often"', { state: 'DISABLED', code: 'crashed', failures: 3 });
  await tenant('waits', { state: 'ENABLED', code: 'no_slot' });
  await host('infinity', true);
  await host('-infinity', true);
  const launcher = newId();
  await control.db.exec(sql`
    insert into launcher (id, machine, pid, version, started_at, beat_at) values (${launcher}, 'm', 1, '1', now(), now())`);
  await control.db.exec(sql`update launcher_lease set holder = ${launcher}, renewed_at = clock_timestamp()`);
  await control.db.exec(sql`
    insert into setting (name, value, changed_at, changed_by) values ('max_background_workers', '9', now(), 'x')`);
  const lines = await scrape();
  for (const line of [
    '# TYPE millrace_tenants gauge',
    'millrace_tenants{state="STARTED"} 1',
    'millrace_tenants{state="ALLOCATED"} 0',
    'millrace_tenants{state="ENABLED"} 1',
    'millrace_tenants{state="DISABLED"} 1',
    'millrace_tenants_not_running{reason="crashed"} 1',
    'millrace_tenants_not_running{reason="no_slot"} 1',
    'millrace_tenants_not_running{reason="unreachable"} 0',
    'millrace_tenants_not_running{reason="silent"} 0',
    'millrace_hosts{state="alive"} 1',
    'millrace_hosts{state="leaving"} 1',
    'millrace_hosts{state="silent"} 1',
    'millrace_launchers{state="active"} 1',
    'millrace_launchers{state="standby"} 0',
    'millrace_slots{state="taken"} 1',
    'millrace_slots{state="waiting"} 2',
    'millrace_slots_limit 9',
    '# TYPE millrace_scheduler_starts_total counter',
    'millrace_scheduler_starts_total{tenant="runs"} 5',
    'millrace_scheduler_failures{tenant="fails \\"often\\""} 3',
  ])
    expect(lines).toContain(line);
});

it('metrics count a STARTED tenant with a silent host as not running, without a launcher', async () => {
  const silent = async () => (await scrape()).find((line) => line.includes('reason="silent"'));
  expect(await silent()).toMatch(/ 0$/);
  await tenant('of a silent host', { state: 'STARTED', hostId: await host('-infinity', false) });
  await tenant('of a host that is gone', { state: 'STARTED', hostId: newId() });
  expect(await silent()).toMatch(/ 2$/);
  const hostId = await host('infinity', false);
  const ended = await tenant('ended', { state: 'STARTED', hostId });
  await control.db.exec(sql`
    insert into scheduler (tenant_id, host_id, order_no, id, engine, phase, code, reason, changed_at, beat_at)
    values (${ended}, ${hostId}, 5, ${newId()}, '1', 'ended', 'unreachable', 'lost', now(), now())`);
  expect(await scrape()).toContain('millrace_tenants_not_running{reason="unreachable"} 1');
});

it('metrics count workers alive by the runtimes that they have, and by those that do not answer', async () => {
  const worker = (places: number, beatAt: string, runtimes: string, unavailable: object): Promise<unknown> =>
    control.db.exec(sql`
      insert into worker (id, incarnation, name, addr, version, places, running, runtimes, unavailable, queues, first_seen_at, beat_at)
      values (${newId()}, 1, 'w', '', '1', ${places}, 0, ${runtimes.split(' ')}, ${JSON.stringify(unavailable)}::jsonb, '{}', now(),
              ${beatAt}::timestamptz)`);
  await worker(8, 'infinity', 'none docker', {});
  await worker(8, 'infinity', 'none', { docker: 'it does not answer' });
  await worker(0, 'infinity', 'none docker', {});
  await worker(8, '-infinity', 'none docker', {});
  const lines = await scrape();
  expect(lines.filter((line) => line.startsWith('millrace_workers'))).toEqual([
    'millrace_workers{runtime="docker"} 1',
    'millrace_workers{runtime="none"} 2',
    'millrace_workers_unavailable{runtime="docker"} 1',
  ]);
});
