/**
 * `bench -- timers`: executions that sleep. First many sleepers, with the memory that each takes; beside them a thousand that are due
 * every second, with the lateness of each; then many that are due at one instant, until the last one has ended.
 *
 * The lateness is the time from the planned instant until the commit in which the timer took effect was answered. Bare commits are measured
 * right before and right after.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { commitTimes } from '../commits.ts';
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
  report.progress(`${sleepers.toLocaleString('en-US')} sleepers`);
  const memory = await putToSleep(stage, sleepers);
  report.progress(`${duePerSecond.toLocaleString('en-US')} due per second`);
  const commits = await commitTimes(stage.address, options);
  const lateness = await steadyLateness(stage, options);
  commits.push(...(await commitTimes(stage.address, options)));
  report.progress(`${burst.toLocaleString('en-US')} due at one instant`);
  const burstMs = await burstTime(stage, burst);
  await stage.verify({ waiting: sleepers });
  await stage.stop();
  await server.stop();
  const commit = percentiles(commits);
  report.table(
    ['', 'n', 'p50 ms', 'p90', 'p99', 'max'],
    [
      rowOf(`lateness at ${duePerSecond.toLocaleString('en-US')} due per second`, lateness),
      rowOf('one row committed', commit),
    ],
  );
  report.table(
    ['sleepers', 'launched per second', 'MB of heap', 'KB for each', 'MB resident, whole process'],
    [
      [
        sleepers,
        ...[memory.perSecond, memory.heapMb, (memory.heapMb * 1_024) / sleepers, memory.residentMb].map(figure),
      ],
    ],
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
  readonly residentMb: number;
}

async function putToSleep(stage: FlowStage, count: number): Promise<Memory> {
  const before = heapUsed();
  const startedMs = performance.now();
  const at = new Date(Date.now() + 30 * 24 * 3_600_000).toISOString();
  for (let done = 0; done < count; done += perLaunch)
    await stage.launch(
      sleeper.flow,
      many(Math.min(perLaunch, count - done), () => ({ at })),
    );
  const perSecond = (count / (performance.now() - startedMs)) * 1_000;
  const heapMb = (heapUsed() - before) / 2 ** 20;
  return { perSecond, heapMb, residentMb: process.memoryUsage.rss() / 2 ** 20 };
}

/** After a collection of garbage. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

function many<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** Launches go on all the time, each for an instant of its own two seconds later. */
async function steadyLateness(stage: FlowStage, { seconds, quick }: Options): Promise<Percentiles> {
  const lateMs: Promise<number>[] = [];
  const perSlice = (quick ? 100 : duePerSecond) / slices;
  const sliceMs = 1_000 / slices;
  const startedMs = Date.now();
  for (let slice = 0; slice < Math.ceil(seconds * slices); slice++) {
    const fromMs = startedMs + slice * sliceMs;
    await sleep(Math.max(0, fromMs - Date.now()));
    const dueMs = many(perSlice, (i) => Math.ceil(fromMs + aheadMs + (i * sliceMs) / perSlice));
    const inputs = dueMs.map((ms) => ({ at: new Date(ms).toISOString() }));
    const ids = await stage.launch(sleeper.flow, inputs);
    for (const [i, id] of ids.entries()) lateMs.push(stage.ended(id).then((atMs) => atMs - (dueMs[i] ?? 0)));
  }
  return percentiles(await Promise.all(lateMs));
}

/** From the instant to the end of the last execution. */
async function burstTime(stage: FlowStage, count: number): Promise<number> {
  const dueMs = Date.now() + 5_000 + count;
  const ends: Promise<number>[] = [];
  for (let done = 0; done < count; done += perLaunch) {
    const due = many(Math.min(perLaunch, count - done), () => ({ at: new Date(dueMs).toISOString() }));
    for (const id of await stage.launch(sleeper.flow, due)) ends.push(stage.ended(id));
  }
  if (Date.now() > dueMs) throw new Error('the launches took longer than the sleep');
  const endedMs = await Promise.all(ends);
  return Math.max(...endedMs) - dueMs;
}
