/**
 * `bench -- burst`: measures what happens at once on an idle system, each against a yardstick of the same run.
 *
 * - A thousand tasks that have never run become due at one instant: the time until all have started, against the time that
 *   the steady rate needs for as many.
 * - One fan-out 1 → 10 → 1 as a whole, against bare commits that take turns with it.
 * - Ordinary triggers, from due to started, against bare commits halfway between them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../src/kernel/sql.ts';
import { type Commits, openCommits, restMs, timed } from './commits.ts';
import { applyInTime, measureOrdinary, waitUntil } from './lateness.ts';
import { makeLoad } from './load.ts';
import type { Options } from './options.ts';
import { type Percentiles, percentiles } from './percentiles.ts';
import { startUp, type Up } from './product.ts';
import { type Aim, aim, figure, type Report, type Result } from './report.ts';
import { startServer } from './server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from './tenant.ts';
import { fanOf, triggered } from './workloads.ts';

const fanWidth = 10;
const warmUps = 10;
/** The rest after the burst's instant before its runs are counted, so that counting does not slow them down. */
const settleMs = 500;
/** Notice of the burst for each of its jobs: applying one takes about 10 ms here. */
const noticePerJobMs = 20;
const minNoticeMs = 4_000;

interface Burst {
  readonly tasks: number;
  /** Milliseconds after the instant, by run. */
  readonly fired: Percentiles;
  readonly started: Percentiles;
  /** Runs of the same tasks per second under sustained load. */
  readonly steadyRate: number;
}

/** What was measured, and the bare commits that took turns with it. */
interface Compared {
  readonly own: Percentiles;
  readonly commit: Percentiles;
}

export interface Measured {
  readonly burst: Burst;
  readonly fan: Compared;
  readonly triggers: Compared;
}

export async function burst(options: Options, report: Report): Promise<Result> {
  const server = await startServer(options);
  const control = await server.fresh(controlDatabase);
  const up = await startUp({
    home: server.home,
    databaseUrl: control.url,
    worker: true,
    places: 1_000,
    profileTo: options.profile,
  });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const first = await measureFirstRuns(tenant, options, report);
  const steadyRate = await measureSteadyRate(up, tenant, options, report);
  const commits = await openCommits(control);
  const fan = await measureFan(tenant, { options, commits }, report);
  const ordinary = await measureOrdinary(tenant, options, report, commits);
  const triggers = { own: percentiles(ordinary.started), commit: percentiles(ordinary.commits) };
  await commits.close();
  await tenant.close();
  await up.stop();
  await server.stop();
  return conclude({ burst: { ...first, steadyRate }, fan, triggers }, report);
}

/** Each task belongs to a job of its own. Nothing has run before, so the worker knows none of their definitions. */
async function measureFirstRuns(
  tenant: Tenant,
  { quick }: Options,
  report: Report,
): Promise<Omit<Burst, 'steadyRate'>> {
  const tasks = quick ? 50 : 1_000;
  report.progress(`${tasks} tasks that have never run, due at one instant`);
  const documents = (start: number): object[] =>
    Array.from({ length: tasks }, (_, i) => ({
      // jobs of a try that took too long have run, so each try makes its own
      name: `first ${i} at ${start}`,
      triggers: [{ name: 'start', start: new Date(start).toISOString(), period: '1 day' }],
      tasks: [{ name: 'task', ...triggered }],
    }));
  const dueAt = await applyInTime(tenant, documents, Math.max(minNoticeMs, tasks * noticePerJobMs));
  await sleep(dueAt + settleMs - Date.now());
  const rows = await waitUntil(dueAt, async () => {
    const found = await tenant.db.rows<{ fired: number; started: number }>(sql`
      select extract(epoch from queued_at - instant)::float8 * 1000 as fired,
             extract(epoch from started_at - instant)::float8 * 1000 as started
        from run where instant = ${new Date(dueAt)}`);
    return found.length >= tasks ? found : undefined;
  });
  return {
    tasks,
    fired: percentiles(rows.map(({ fired }) => fired)),
    started: percentiles(rows.map(({ started }) => started)),
  };
}

async function measureSteadyRate(up: Up, tenant: Tenant, { seconds, quick }: Options, report: Report): Promise<number> {
  report.progress(`the same tasks under sustained load for ${seconds} s`);
  const load = await makeLoad({ up, tenant, workload: { runsPerFiring: 1 }, outstanding: quick ? 500 : 10_000 });
  return (await load.run(seconds * 1_000)).perSecond;
}

/** From the commit that fires the trigger to the end of the last run, one fan-out at a time. */
async function measureFan(
  tenant: Tenant,
  { options: { seconds, quick }, commits }: { readonly options: Options; readonly commits: Commits },
  report: Report,
): Promise<Compared> {
  report.progress(`one fan-out 1 → ${fanWidth} → 1 at a time for ${seconds} s`);
  await tenant.apply([{ ...fanOf(fanWidth), name: 'fan' }]);
  const { id: triggerId } = await tenant.db.one<{ id: string }>(sql`
    select trigger.id from trigger join job on job.id = trigger.job_id where job.name = 'fan'`);
  const firstMs = Date.now() - 24 * 3_600_000;
  let fired = 0;
  const runFan = async (): Promise<number> => {
    const instantMs = firstMs + fired++ * 1_000;
    await tenant.fire([{ triggerId, instantMs }]);
    const { ms } = await waitUntil(Date.now(), () => findFan(tenant, triggerId, new Date(instantMs)));
    await sleep(restMs);
    return ms;
  };
  for (let i = 0; i < (quick ? 1 : warmUps); i++) await runFan();
  const own: number[] = [];
  const commit: number[] = [];
  for (const until = performance.now() + seconds * 1_000; performance.now() < until; ) {
    own.push(await runFan());
    commit.push(await timed(commits.make));
    await sleep(restMs);
  }
  return { own: percentiles(own), commit: percentiles(commit) };
}

async function findFan(tenant: Tenant, triggerId: string, instant: Date): Promise<{ ms: number } | undefined> {
  const row = await tenant.db.one<{ n: number; ms: number }>(sql`
    select count(*)::integer as n, extract(epoch from max(finished_at) - min(queued_at))::float8 * 1000 as ms
      from run
     where instant = ${instant}
       and task_id in (select task.id from task join trigger using (job_id) where trigger.id = ${triggerId})`);
  return row.n >= fanWidth + 2 ? row : undefined;
}

function conclude(measured: Measured, report: Report): Result {
  const { burst: first, fan, triggers } = measured;
  report.line(`${first.tasks.toLocaleString('en-US')} tasks that have never run, due at one instant`);
  report.table(
    ['', 'ms'],
    [
      ['all fired', figure(first.fired.max)],
      ['all started', figure(first.started.max)],
      [`as many at the steady rate of ${figure(first.steadyRate)} runs/s`, figure(steadyMs(first))],
    ],
  );
  report.line('On an idle system, in ms');
  report.table(
    ['', 'n', 'p50', 'p90', 'p99', 'max'],
    Object.entries({
      [`a fan-out 1 → ${fanWidth} → 1, whole`]: fan.own,
      'between fan-outs: one row committed': fan.commit,
      'an ordinary trigger to its run started': triggers.own,
      'between triggers: one row committed': triggers.commit,
    }).map(([name, p]) => [name, p.n, ...[p.p50, p.p90, p.p99, p.max].map(figure)]),
  );
  const ratio = first.started.max / steadyMs(first);
  const { fired, started } = first;
  return {
    rate: first.steadyRate,
    raw: null,
    ratio,
    percentiles: {
      fired,
      started,
      fan: fan.own,
      commitBesideFan: fan.commit,
      triggers: triggers.own,
      commitBesideTriggers: triggers.commit,
    },
    aims: burstAims(measured),
    details: { tasks: first.tasks },
  };
}

function steadyMs({ tasks, steadyRate }: Burst): number {
  return (tasks / steadyRate) * 1_000;
}

export function burstAims({ burst: first, fan, triggers }: Measured): Aim[] {
  const what = `${first.tasks.toLocaleString('en-US')} tasks that have never run, all started, against the steady rate`;
  return [
    aim(what, first.started.max / steadyMs(first), { atMost: 1.5 }, ' ×'),
    aim(
      `one fan-out 1 → ${fanWidth} → 1, p50, against a bare commit`,
      fan.own.p50 / fan.commit.p50,
      { atMost: 15 },
      ' ×',
    ),
    aim(
      'a trigger to its run started, p99, against a bare commit',
      triggers.own.p99 / triggers.commit.p99,
      { atMost: 5 },
      ' ×',
    ),
  ];
}
