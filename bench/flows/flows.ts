/**
 * `bench -- flows`: executions of three hosted steps, from launch to end, against DBOS and against a raw writer of the same rows, turn by
 * turn on one server. Then the latency on an idle system, the cost with many old executions (`--old N`), and the same flow with
 * tasks on worker processes against a job of three tasks.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { measureCommits, restMs } from '../commits.ts';
import type { Options } from '../options.ts';
import { mean, percentiles, type Percentiles } from '../percentiles.ts';
import { type Aim, aim, figure, type Report, type Result } from '../report.ts';
import { startServer } from '../server.ts';
import { openDbos, type RivalFlows } from './dbos.ts';
import { addOldExecutions } from './old-executions.ts';
import { openRawExecutions, type RawExecutions } from './raw.ts';
import { type FlowStage, setFlowStage } from './stage.ts';
import { measureWorkers, type WorkerRates } from './workers.ts';

const inFlight = 256;
const turns = 3;
const rawDatabase = 'bench_raw';
const rivalDatabase = 'bench_rival';
/** About 200 bytes. */
const input = {
  order: { id: 'o-4711', customer: 'anna', items: ['plate', 'cup', 'bowl'], total: 127.5 },
  note: 'x'.repeat(100),
};

const three = {
  flow: 'three',
  steps: ['first', 'second', 'third'].map((task) => ({ task, with: '$(f.order)', result: 'f.order' })),
};

const echo = (value: unknown): unknown => value;
const functions = { first: echo, second: echo, third: echo };

interface Sides {
  readonly stage: FlowStage;
  readonly rival: RivalFlows;
  readonly raw: RawExecutions;
}

export async function flows(options: Options, report: Report): Promise<Result> {
  const server = await startServer(options);
  const stage = await setFlowStage(server, functions);
  await stage.apply(three);
  const rival = await openDbos(await server.fresh(rivalDatabase));
  const raw = await openRawExecutions(await server.fresh(rawDatabase));
  await raw.sample(stage.db, await stage.run('three', input));
  const rates = await takeTurns({ stage, rival, raw }, options, report);
  report.progress('idle');
  const idle = await idleTimes(() => stage.run('three', input), options);
  const rivalIdle = await idleTimes(() => rival.run(input), options);
  const commit = await measureCommits(stage.address, options);
  const aged = options.old > 0 ? await measureAged(stage, options, report) : undefined;
  await Promise.all([stage.stop(), rival.close(), raw.close()]);
  const workers = options.quick ? undefined : await measureWorkers(server, report);
  await server.stop();
  printRates(report, rates);
  printIdle(report, { idle, rivalIdle, commit });
  const aims = [
    aim('three hosted steps, against DBOS', rates.own / rates.rival, { atLeast: 10 }, ' ×'),
    aim('the same, against a raw writer', rates.own / rates.raw, { atLeast: 0.5 }, ' ×'),
    aim('idle p50, against DBOS', idle.p50 / rivalIdle.p50, { atMost: 0.6 }, ' ×'),
    ...agedAims(aged),
    ...workerAims(workers),
  ];
  const percentilesOf = { idle, rivalIdle, commit };
  const details = { rates, aged, workers };
  return { rate: rates.own, raw: rates.raw, ratio: rates.own / rates.raw, percentiles: percentilesOf, aims, details };
}

interface Rates {
  readonly own: number;
  readonly rival: number;
  readonly raw: number;
}

async function takeTurns({ stage, rival, raw }: Sides, { seconds, quick }: Options, report: Report): Promise<Rates> {
  const ms = (seconds * 1_000) / turns;
  const all: Rates[] = [];
  for (let turn = 0; turn < (quick ? 1 : turns); turn++) {
    const own = await closedLoop(() => stage.run('three', input), ms);
    const rivals = await closedLoop(() => rival.run(input), ms);
    const rows = await raw.write(ms);
    all.push({ own, rival: rivals, raw: rows });
    report.progress(`turn ${turn + 1}: ${figure(own)}, DBOS ${figure(rivals)}, raw ${figure(rows)} executions/s`);
  }
  const average = (key: keyof Rates): number => mean(all.map((rates) => rates[key]));
  return { own: average('own'), rival: average('rival'), raw: average('raw') };
}

/** Keeps `inFlight` executions under way. Returns how many ended per second. */
async function closedLoop(run: () => Promise<unknown>, ms: number): Promise<number> {
  const startedMs = performance.now();
  let done = 0;
  const work = async (): Promise<void> => {
    while (performance.now() < startedMs + ms) {
      await run();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
  return (done / (performance.now() - startedMs)) * 1_000;
}

async function idleTimes(run: () => Promise<unknown>, { quick }: Options): Promise<Percentiles> {
  const samples: number[] = [];
  for (let i = 0; i < (quick ? 5 : 300); i++) {
    const startedMs = performance.now();
    await run();
    samples.push(performance.now() - startedMs);
    await sleep(restMs);
  }
  return percentiles(samples);
}

interface Aged {
  readonly empty: number;
  readonly full: number;
}

/** The rate before and after many old executions are in the tables. */
async function measureAged(stage: FlowStage, { old, seconds }: Options, report: Report): Promise<Aged> {
  const ms = (seconds * 1_000) / turns;
  const rateOf = async (): Promise<number> => {
    const rates: number[] = [];
    for (let turn = 0; turn < turns; turn++) rates.push(await closedLoop(() => stage.run('three', input), ms));
    return mean(rates);
  };
  const empty = await rateOf();
  report.progress(`adding ${old.toLocaleString('en-US')} old executions`);
  await addOldExecutions(stage.db, await stage.run('three', input), old);
  return { empty, full: await rateOf() };
}

function agedAims(aged: Aged | undefined): Aim[] {
  if (aged === undefined) return [];
  return [aim('cost per execution beside old ones, against none', aged.empty / aged.full, { atMost: 1.1 }, ' ×')];
}

function workerAims(workers: WorkerRates | undefined): Aim[] {
  if (workers === undefined) return [];
  return [aim('the flow on workers, against a job of three tasks', workers.flow / workers.job, { atLeast: 0.5 }, ' ×')];
}

function printRates(report: Report, { own, rival, raw }: Rates): void {
  report.line(`Executions of three hosted steps, ${inFlight} in flight, from launch to end, per second`);
  report.table(['Millrace', 'DBOS', 'raw writer of the same rows'], [[figure(own), figure(rival), figure(raw)]]);
}

function printIdle(report: Report, times: Readonly<Record<'idle' | 'rivalIdle' | 'commit', Percentiles>>): void {
  report.line('The whole execution on an idle system, in ms');
  const names = { idle: 'Millrace', rivalIdle: 'DBOS', commit: 'for comparison: one row committed' } as const;
  report.table(
    ['', 'n', 'p50', 'p90', 'p99', 'max'],
    (['idle', 'rivalIdle', 'commit'] as const).map((key) => {
      const { n, p50, p90, p99, max } = times[key];
      return [names[key], n, ...[p50, p90, p99, max].map(figure)];
    }),
  );
}
