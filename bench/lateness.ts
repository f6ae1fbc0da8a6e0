/**
 * `bench -- lateness`: measures how late triggers fire. First ten thousand triggers due at one instant: the time until the
 * last has fired and its run has finished. Then ordinary triggers, fifty a second: the delay until each fires and starts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Sql, sql } from '../src/kernel/sql.ts';
import { type Commits, timed } from './commits.ts';
import type { Options } from './options.ts';
import { percentiles } from './percentiles.ts';
import { startUp } from './product.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { startServer } from './server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from './tenant.ts';

const triggersPerJob = 1_000;
const perSecond = 50;
/** Each trigger fires before it is measured, because a worker fetches a task's definition once. */
const warmUpMs = 2_000;
/** Shortest time from the start of applying triggers until they are due. */
const shortestNoticeMs = 4_000;
/** Part of that notice that is left to the scheduler for reading the triggers. */
const readMs = 2_000;

export async function lateness(options: Options, report: Report): Promise<Result> {
  const server = await startServer(options);
  const control = await server.fresh(controlDatabase);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: true, places: 1_000 });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const crowd = await measureCrowd(tenant, options.quick ? 1_000 : 10_000, report);
  const ordinary = await measureOrdinary(tenant, options, report);
  await tenant.close();
  await up.stop();
  await server.stop();
  const [fired, started] = [percentiles(ordinary.fired), percentiles(ordinary.started)];
  report.line(`Ordinary triggers, ${perSecond} a second: ms after their time`);
  report.table(
    ['', 'n', 'p50', 'p90', 'p99', 'max'],
    Object.entries({ fired, started }).map(([name, p]) => [name, p.n, ...[p.p50, p.p90, p.p99, p.max].map(figure)]),
  );
  report.line(`${crowd.triggers.toLocaleString('en-US')} triggers due at one instant: ms until all have`);
  report.table(
    ['', 'ms'],
    [
      ['fired (committed)', Math.round(crowd.firedMs)],
      ['finished their run', Math.round(crowd.finishedMs)],
    ],
  );
  const aims = [
    aim(`${crowd.triggers.toLocaleString('en-US')} at one instant, all fired`, crowd.firedMs, { below: 1_000 }, ' ms'),
    aim('an ordinary trigger fired, p99', fired.p99, { below: 20 }, ' ms'),
    aim('an ordinary trigger to its run started, p99', started.p99, { below: 20 }, ' ms'),
  ];
  return { rate: null, raw: null, ratio: null, percentiles: { fired, started }, aims, details: { crowd } };
}

/** A job with one task per trigger, so that each firing makes a run of its own. */
function document(name: string, count: number, start: (i: number) => number, period: string): object {
  const numbers = Array.from({ length: count }, (_, i) => i);
  return {
    name,
    triggers: numbers.map((i) => ({ name: `t${i}`, start: new Date(start(i)).toISOString(), period })),
    tasks: numbers.map((i) => ({ name: `k${i}`, depends: [`trigger/t${i}`] })),
  };
}

/** Applies jobs that become due only after all are applied: doubles the notice until that succeeds. Returns the due time. */
export async function applyInTime(
  tenant: Tenant,
  documents: (dueAt: number) => readonly object[],
  firstNoticeMs = shortestNoticeMs,
): Promise<number> {
  for (let noticeMs = firstNoticeMs; ; noticeMs *= 2) {
    const dueAt = Date.now() + noticeMs;
    await tenant.apply(documents(dueAt));
    if (Date.now() < dueAt - readMs) return dueAt;
  }
}

export interface Ordinary {
  readonly fired: number[];
  readonly started: number[];
  readonly commits: number[];
}

/** With `commits`, a bare commit is made halfway between two triggers, so that both see the same machine. */
export async function measureOrdinary(
  tenant: Tenant,
  { seconds }: Options,
  report: Report,
  commits?: Commits,
): Promise<Ordinary> {
  report.progress(`ordinary triggers: ${perSecond} a second for ${seconds} s`);
  const firstAt = await applyInTime(tenant, (dueAt) => [
    document('ordinary', perSecond, (i) => dueAt + (i * 1_000) / perSecond, '1s'),
  ]);
  const from = new Date(firstAt + warmUpMs);
  const to = new Date(from.getTime() + seconds * 1_000);
  const commitTimes = commits === undefined ? [] : await commitBetween(commits, from.getTime(), to.getTime());
  await sleep(to.getTime() - Date.now());
  const within = sql`run where instant >= ${from} and instant < ${to}`;
  await until(to.getTime(), async () => (await rowsOf(tenant, within)) >= perSecond * seconds);
  const rows = await tenant.db.rows<{ fired: number; started: number }>(sql`
    select extract(epoch from queued_at - instant)::float8 * 1000 as fired,
           extract(epoch from started_at - instant)::float8 * 1000 as started
      from ${within}`);
  return {
    fired: rows.map(({ fired }) => fired),
    started: rows.map(({ started }) => started),
    commits: commitTimes,
  };
}

/** One commit between two triggers, from one time to another. Returns the milliseconds of each. */
async function commitBetween(commits: Commits, fromMs: number, toMs: number): Promise<number[]> {
  const stepMs = 1_000 / perSecond;
  const samples: number[] = [];
  for (let atMs = fromMs + stepMs / 2; atMs < toMs; atMs += stepMs) {
    await sleep(Math.max(0, atMs - Date.now()));
    if (Date.now() < atMs + stepMs / 4) samples.push(await timed(commits.make));
  }
  return samples;
}

interface Crowd {
  readonly triggers: number;
  readonly firedMs: number;
  readonly finishedMs: number;
}

async function measureCrowd(tenant: Tenant, triggers: number, report: Report): Promise<Crowd> {
  report.progress(`${triggers} triggers that are due at one instant`);
  const dueAt = await applyInTime(tenant, (start) =>
    Array.from({ length: triggers / triggersPerJob }, (_, i) =>
      document(`crowd ${i}`, triggersPerJob, () => start, '1 day'),
    ),
  );
  await sleep(dueAt - Date.now());
  const at = new Date(dueAt);
  const firedMs = await until(dueAt, async () => (await rowsOf(tenant, sql`firing where instant = ${at}`)) >= triggers);
  const finishedMs = await until(dueAt, async () => (await rowsOf(tenant, sql`run where instant = ${at}`)) >= triggers);
  return { triggers, firedMs, finishedMs };
}

async function rowsOf({ db }: Tenant, from: Sql): Promise<number> {
  return (await db.one<{ n: number }>(sql`select count(*) as n from ${from}`)).n;
}

const patienceMs = 60_000;

/** Polls until `done`; returns the milliseconds since `fromMs`. */
async function until(fromMs: number, done: () => Promise<boolean>): Promise<number> {
  return waitUntil(fromMs, async () => ((await done()) ? Date.now() - fromMs : undefined));
}

/** Polls until `find` finds something, for at most a minute after `fromMs`. */
export async function waitUntil<T>(fromMs: number, find: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    if (Date.now() - fromMs > patienceMs) throw new Error(`not all runs have ended within ${patienceMs / 1_000} s`);
    await sleep(10);
  }
}
