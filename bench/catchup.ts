/**
 * `bench -- catchup`: catches up and runs a million missed instants, split over the three policies, while another trigger
 * fires every second. Reports the rate per policy, the lateness of the live trigger, the longest queue and peak memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../src/kernel/sql.ts';
import type { Options } from './options.ts';
import { type Percentiles, percentiles } from './percentiles.ts';
import { pidsBelow, proportionalBytes } from './processes.ts';
import { startUp, type Up } from './product.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { startServer } from './server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from './tenant.ts';

const policies = { earliest: 0.8, latest: 0.1, random: 0.1 } as const;
type Policy = keyof typeof policies;

export async function catchup(options: Options, report: Report): Promise<Result> {
  const instants = options.runs || (options.quick ? 5_000 : 1_000_000);
  const server = await startServer(options);
  const control = await server.fresh(controlDatabase);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: true, places: 1_000 });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  await tenant.apply([{ name: 'live', ...everySecond({ start: isoOf(Date.now() + 3_000), catchup: 'none' }) }]);
  const watched = new Map<Policy, Watched>();
  for (const [policy, share] of Object.entries(policies) as [Policy, number][]) {
    watched.set(policy, await watch({ tenant, up, report }, policy, Math.round(instants * share)));
  }
  const late = await lateness(tenant);
  await tenant.close();
  await up.stop();
  await server.stop();
  const all = [...watched.values()];
  reportResults(report, watched, late);
  const rate = Math.min(...all.map((each) => each.rate));
  const queue = Math.max(...all.map((each) => each.longestQueue));
  const aims = [
    aim('a live trigger beside it fired, worst', late.max, { below: 100 }, ' ms'),
    aim('the queue at its longest', queue, { below: 10_000 }, ' runs'),
  ];
  return { rate, raw: null, ratio: null, percentiles: { late }, aims, details: Object.fromEntries(watched) };
}

interface Watched {
  readonly instants: number;
  readonly seconds: number;
  readonly rate: number;
  readonly longestQueue: number;
  /** Of `up` and its host together; memory that they share counts once. */
  readonly largestMb: number;
}

function reportResults(report: Report, watched: ReadonlyMap<Policy, Watched>, late: Percentiles): void {
  report.line('Missed instants, each caught up and its run finished');
  report.table(
    ['policy', 'instants', 's', 'a second', 'longest queue', 'MB at most'],
    [...watched].map(([policy, each]) => [
      policy,
      each.instants.toLocaleString('en-US'),
      ...[each.seconds, each.rate, each.longestQueue, each.largestMb].map(figure),
    ]),
  );
  report.line('A live trigger meanwhile, once a second: ms after its time');
  const { n, p50, p90, p99, max } = late;
  report.table(['', 'n', 'p50', 'p90', 'p99', 'max'], [['fired', n, ...[p50, p90, p99, max].map(figure)]]);
}

function everySecond(trigger: object): object {
  return {
    triggers: [{ name: 't', period: '1s', ...trigger }],
    tasks: [{ name: 'a', depends: ['trigger/t'] }],
  };
}

/** Applies a job that has missed `instants` instants, and waits until all of them have run. */
async function watch(
  { tenant, up, report }: { tenant: Tenant; up: Up; report: Report },
  policy: Policy,
  instants: number,
): Promise<Watched> {
  report.progress(`${instants.toLocaleString('en-US')} missed instants, ${policy}`);
  const end = Date.now() - 120_000;
  const times = { start: isoOf(end - instants * 1_000), end: isoOf(end), catchup: policy };
  const startedAt = performance.now();
  await tenant.apply([{ name: policy, ...everySecond(times) }]);
  let [longestQueue, largest, finished] = [0, 0, 0];
  while (finished < instants) {
    await sleep(500);
    const { queued, done } = await progressOf(tenant, policy);
    finished = done;
    longestQueue = Math.max(longestQueue, queued);
    largest = Math.max(largest, await proportionalBytes(await pidsBelow(up.pid)));
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { instants, seconds, rate: instants / seconds, longestQueue, largestMb: largest / 2 ** 20 };
}

/** Counts runs only once no catch-up is left, because counting a million rows takes a while. */
async function progressOf(tenant: Tenant, job: string): Promise<{ queued: number; done: number }> {
  const { queued, left } = await tenant.db.one<{ queued: number; left: number }>(sql`
    select (select count(*) from live) as queued, (select count(*) from catchup) as left`);
  const isNoted = sql`exists (select 1 from trigger where trigger.job_id = job.id and trigger.latest is not null)`;
  if (left > 0 || queued > 2) return { queued, done: 0 };
  const { done } = await tenant.db.one<{ done: number }>(sql`
    select count(*) as done
      from job
      join task on task.job_id = job.id
      join run on run.task_id = task.id
     where job.name = ${job} and ${isNoted}`);
  return { queued, done };
}

/** Waits for the first run of the live trigger: with few instants, the catch-up may end before it fires. */
async function lateness({ db }: Tenant): Promise<Percentiles> {
  for (;;) {
    const rows = await db.rows<{ ms: number }>(sql`
      select extract(epoch from run.queued_at - run.instant)::float8 * 1000 as ms
        from job
        join task on task.job_id = job.id
        join run on run.task_id = task.id
       where job.name = 'live'`);
    if (rows.length > 0) return percentiles(rows.map(({ ms }) => ms));
    await sleep(100);
  }
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
