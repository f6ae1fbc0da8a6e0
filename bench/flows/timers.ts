/**
 * `bench -- timers`: executions that sleep. First many sleepers, with the memory that each takes; beside them a thousand that are due
 * every second, with the lateness of each; then many that are due at one instant, until the last one has ended.
 *
 * The lateness is that of the commit in which a timer took effect, by the history: its time less the time that was planned.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/kernel/sql.ts';
import { measureCommits } from '../commits.ts';
import type { Options } from '../options.ts';
import { percentiles, type Percentiles } from '../percentiles.ts';
import { aim, figure, type Report, type Result } from '../report.ts';
import { startServer } from '../server.ts';
import { type FlowStage, setFlowStage } from './stage.ts';

const perLaunch = 1_000;
const duePerSecond = 1_000;
/** Launches of the executions that are due in one second are spread over it. */
const slices = 20;
/** Between a launch and its timer. */
const aheadMs = 2_000;

const sleeper = { flow: 'sleeper', steps: [{ wait: { until: '$(f.at)' } }] };

export async function timers(options: Options, report: Report): Promise<Result> {
  const sleepers = options.runs || (options.quick ? 2_000 : 100_000);
  const burst = options.quick ? 500 : 10_000;
  const server = await startServer(options);
  const stage = await setFlowStage(server, {});
  await stage.apply(sleeper);
  const commit = await measureCommits(stage.address, options);
  report.progress(`${sleepers.toLocaleString('en-US')} sleepers`);
  const memory = await putToSleep(stage, sleepers);
  report.progress(`${duePerSecond.toLocaleString('en-US')} due per second`);
  const lateness = await steadyLateness(stage, options);
  report.progress(`${burst.toLocaleString('en-US')} due at one instant`);
  const burstMs = await burstTime(stage, burst);
  await stage.stop();
  await server.stop();
  report.table(
    ['', 'n', 'p50 ms', 'p90', 'p99', 'max'],
    [
      ['lateness of timers', lateness],
      ['for comparison: one row committed', commit],
    ].map(([name, p]) => rowOf(name as string, p as Percentiles)),
  );
  report.table(
    ['sleepers', 'launched per second', 'MB of heap', 'KB for each'],
    [[sleepers, figure(memory.perSecond), figure(memory.heapMb), figure((memory.heapMb * 1_024) / sleepers)]],
  );
  report.line(`${burst.toLocaleString('en-US')} due at one instant: all ended after ${figure(burstMs)} ms`);
  report.line();
  const aims = [
    aim('lateness at 1,000 due per second, p99, against a commit', lateness.p99 / commit.p99, { atMost: 5 }, ' ×'),
    aim(`${burst.toLocaleString('en-US')} due at one instant, all ended`, burstMs, { atMost: 1_000 }, ' ms'),
  ];
  return { rate: null, raw: null, ratio: null, percentiles: { lateness, commit }, aims, details: { memory, burstMs } };
}

function rowOf(name: string, { n, p50, p90, p99, max }: Percentiles): (string | number)[] {
  return [name, n, ...[p50, p90, p99, max].map(figure)];
}

interface Memory {
  readonly perSecond: number;
  readonly heapMb: number;
}

async function putToSleep(stage: FlowStage, count: number): Promise<Memory> {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const startedMs = performance.now();
  const at = new Date(Date.now() + 30 * 24 * 3_600_000).toISOString();
  for (let done = 0; done < count; done += perLaunch)
    await stage.launch(
      sleeper.flow,
      many(Math.min(perLaunch, count - done), () => ({ at })),
    );
  const perSecond = (count / (performance.now() - startedMs)) * 1_000;
  globalThis.gc?.();
  return { perSecond, heapMb: (process.memoryUsage().heapUsed - before) / 2 ** 20 };
}

function many<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** Launches go on all the time, each for an instant of its own two seconds later. */
async function steadyLateness(stage: FlowStage, { seconds, quick }: Options): Promise<Percentiles> {
  const beganAt = new Date();
  const waits: Promise<void>[] = [];
  const perSlice = (quick ? 100 : duePerSecond) / slices;
  const sliceMs = 1_000 / slices;
  const startedMs = Date.now();
  for (let slice = 0; slice < Math.ceil(seconds * slices); slice++) {
    const fromMs = startedMs + slice * sliceMs;
    await sleep(Math.max(0, fromMs - Date.now()));
    const due = many(perSlice, (i) => ({ at: new Date(fromMs + aheadMs + (i * sliceMs) / perSlice).toISOString() }));
    for (const id of await stage.launch(sleeper.flow, due)) waits.push(stage.ended(id));
  }
  await Promise.all(waits);
  return percentiles(await latenessSince(stage, beganAt));
}

async function latenessSince({ db }: FlowStage, since: Date): Promise<number[]> {
  const rows = await db.rows<{ ms: number }>(sql`
    select extract(epoch from c.at - (l.entry -> 'd' -> 'input' ->> 'at')::timestamptz)::float8 * 1000 as ms
      from execution e
      join commit l on l.execution_id = e.id and l.rev = 1
      join commit c on c.execution_id = e.id and c.rev = e.rev
     where e.created_at > ${since} and e.ended_at is not null`);
  return rows.map(({ ms }) => ms);
}

/** From the instant to the end of the last execution. */
async function burstTime(stage: FlowStage, count: number): Promise<number> {
  const atMs = Date.now() + 5_000 + count;
  const waits: Promise<void>[] = [];
  for (let done = 0; done < count; done += perLaunch) {
    const due = many(Math.min(perLaunch, count - done), () => ({ at: new Date(atMs).toISOString() }));
    for (const id of await stage.launch(sleeper.flow, due)) waits.push(stage.ended(id));
  }
  if (Date.now() > atMs) throw new Error('the launches took longer than the sleep');
  await Promise.all(waits);
  return Date.now() - atMs;
}
