/**
 * `bench -- dag`: measures how many runs per second go the whole way (trigger → token → run → worker → downstream, with
 * their event rows), and how many PostgreSQL alone could write. Both are measured alternately within one benchmark.
 */
import { Client } from 'pg';
import { clientConfig } from '../src/postgres/address.ts';
import { type Stage, setStage } from './dag-stage.ts';
import { atEnd } from './ending.ts';
import { measureMemory } from './memory.ts';
import { addOldRuns } from './old-runs.ts';
import type { Options } from './options.ts';
import { mean } from './percentiles.ts';
import { printProfile, profilingSettings, startProfile } from './profile.ts';
import type { RowsPerThousand } from './raw.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { rowTable } from './row-counts.ts';
import { type Server, startServer } from './server.ts';
import { Tally } from './tally.ts';
import { makeWorkloads, type Workload } from './workloads.ts';

/** One workload under one circumstance. */
interface Measured {
  readonly workload: string;
  readonly circumstance: string;
  readonly rate: number;
  readonly raw: number;
  readonly ratio: number;
  readonly rates: readonly number[];
  readonly raws: readonly number[];
  /** Milliseconds of processor time per 1,000 runs, by part. */
  readonly cpu: { readonly product: Record<string, number>; readonly raw: Record<string, number> };
}

export async function dag(options: Options, report: Report): Promise<Result> {
  const server = await startServer(options, options.profile === undefined ? {} : profilingSettings);
  if (options.runs > 0) return measureMemory(server, chosen(options)[0], options, report);
  const measured: Measured[] = [];
  for (const workload of chosen(options)) {
    report.progress(`${workload.name}: ${workload.title}`);
    measured.push(...(await measure(server, workload, options, report)));
  }
  return conclude(measured, options, report);
}

function chosen({ workload, old, snapshot, runs, quick }: Options): [Workload, ...Workload[]] {
  const one = old > 0 || snapshot || runs > 0 || quick;
  const name = workload ?? (one ? 'chain' : undefined);
  const [first, ...rest] = makeWorkloads(quick).filter((each) => name === undefined || each.name === name);
  if (first === undefined) throw new Error('no workload to run');
  return [first, ...rest];
}

async function measure(server: Server, workload: Workload, options: Options, report: Report): Promise<Measured[]> {
  const stage = await setStage(server, workload, options);
  const rows = await stage.warmUp(options.quick ? 200 : 2_000);
  const measured: Measured[] = [];
  for (const circumstance of circumstancesOf(stage, options, report)) {
    const restore = await circumstance.make();
    const turns = await takeTurns(server, stage, rows, options, report);
    measured.push({ workload: workload.name, circumstance: circumstance.name, ...turns });
    await restore?.();
  }
  const written = await stage.clear();
  // old runs would count as runs of the product
  if (options.old === 0) {
    report.line(`${workload.name} (${workload.title}): rows per 1,000 runs`);
    const titles = ['table', 'inserted', 'updated', 'deleted', 'raw inserted', 'updated', 'deleted'];
    report.table(titles, rowTable(written.product, written.raw, 'run'));
  }
  return measured;
}

interface Circumstance {
  readonly name: string;
  /** Sets up the circumstance. Returns a function that undoes it, if there is something to undo. */
  make(): Promise<(() => Promise<void>) | undefined>;
}

function circumstancesOf({ tenant }: Stage, { old, snapshot }: Options, report: Report): Circumstance[] {
  const plain: Circumstance = { name: 'plain', make: async () => undefined };
  const history: Circumstance = {
    name: `${old.toLocaleString('en-US')} old runs`,
    async make() {
      await addOldRuns(tenant.address, old, (line) => report.progress(line));
      return undefined;
    },
  };
  const foreign: Circumstance = {
    name: 'foreign transaction',
    async make() {
      const client = new Client(clientConfig(tenant.address, 'a foreign transaction'));
      await client.connect();
      await client.query('begin isolation level repeatable read; select count(*) from pg_class');
      return atEnd(() => client.end());
    },
  };
  return [plain, ...(old > 0 ? [history] : []), ...(snapshot ? [foreign] : [])];
}

const turnSeconds = 4;

async function takeTurns(
  server: Server,
  stage: Stage,
  rows: RowsPerThousand,
  { seconds, profile }: Options,
  report: Report,
): Promise<Omit<Measured, 'workload' | 'circumstance'>> {
  const turns = Math.max(1, Math.round(seconds / turnSeconds));
  const productMs = (seconds * 1_000) / turns;
  const rawMs = Math.min(2_000, productMs);
  const workers = stage.workers.map(({ pid }) => pid);
  const postgres = server.pid === undefined ? [] : [server.pid];
  const product = new Tally({ up: [stage.up.pid], workers, postgres });
  const raw = new Tally({ postgres });
  if (profile !== undefined) await startProfile(stage.tenant.db);
  const before = stage.load.asked();
  await raw.add(() => stage.raw.write(rawMs, rows));
  for (let turn = 1; turn <= turns; turn++) {
    await product.add(() => stage.load.run(productMs));
    await raw.add(() => stage.raw.write(rawMs, rows));
    const [rate, best] = [product.rates.at(-1) ?? 0, raw.rates.at(-1) ?? 0];
    report.progress(`  turn ${turn} of ${turns}: ${figure(rate)} runs/s, raw ${figure(best)}`);
  }
  if (profile !== undefined) await printProfile(stage.tenant.db, stage.load.asked() - before, report);
  const [rate, best] = [mean(product.rates), mean(raw.rates)];
  const cpu = { product: product.cpu(), raw: raw.cpu() };
  return { rate, raw: best, ratio: rate / best, rates: product.rates, raws: raw.rates, cpu };
}

function conclude(measured: readonly Measured[], options: Options, report: Report): Result {
  report.line('Runs per second, and milliseconds of processor time per 1,000 runs');
  report.table(
    ['workload', 'runs/s', 'raw', 'ratio', 'PostgreSQL ms', 'raw', 'ratio', 'up and host ms', 'workers ms'],
    measured.map(({ workload, circumstance, rate, raw, ratio, cpu }) => {
      const [ours, best] = [cpu.product['postgres'] ?? 0, cpu.raw['postgres'] ?? 0];
      const name = circumstance === 'plain' ? workload : `${workload}, ${circumstance}`;
      const spent = [ours, best, best / ours, cpu.product['up'] ?? 0, cpu.product['workers'] ?? 0];
      return [name, figure(rate), figure(raw), ratio.toFixed(2), ...spent.map(figure)];
    }),
  );
  const [first, ...rest] = measured.toSorted((a, b) => a.ratio - b.ratio);
  if (first === undefined) throw new Error('no measurement was taken');
  const { rate, raw, ratio } = first;
  return { rate, raw, ratio, percentiles: {}, aims: aimsOf([first, ...rest], options), details: measured };
}

function aimsOf(measured: readonly Measured[], { workers }: Options): Result['aims'] {
  const plain = measured.filter(({ circumstance }) => circumstance === 'plain');
  const others = measured.filter(({ circumstance }) => circumstance !== 'plain');
  const what =
    workers === 0 ? 'of raw PostgreSQL, worker in-process' : `of raw PostgreSQL, ${workers} workers over HTTP`;
  const worst = Math.min(...plain.map(({ ratio }) => ratio));
  return [
    aim(what, worst, { atLeast: workers === 0 ? 0.5 : 0.4 }, ''),
    ...others.map(({ workload, circumstance, cpu }) => {
      const empty = plain.find((each) => each.workload === workload)?.cpu.product ?? {};
      const more = (total(cpu.product) / total(empty) - 1) * 100;
      return aim(`processor time per run with ${circumstance}, against plain`, more, { below: 10 }, ' % more');
    }),
  ];
}

/** Processor time of the product and its PostgreSQL server, without the benchmark itself. */
function total({ up = 0, workers = 0, postgres = 0 }: Readonly<Record<string, number>>): number {
  return up + workers + postgres;
}
