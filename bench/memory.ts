/** `bench -- dag --runs N`: measures the memory of all processes while N runs go through. It must not grow with them. */
import { setStage } from './dag-stage.ts';
import type { Options } from './options.ts';
import { mean } from './percentiles.ts';
import { pidsBelow, residentBytes } from './processes.ts';
import type { Aim, Report, Result } from './report.ts';
import type { Server } from './server.ts';
import type { Workload } from './workloads.ts';

interface Sample {
  readonly runs: number;
  readonly perSecond: number;
  /** Megabytes: `resident` of all Node processes together, `heap` of `up`. */
  readonly resident: number;
  readonly heap: number;
}

/** Rows of the printed table. */
const steps = 20;
const sliceMs = 5_000;
/** Growth up to this is normal variation of the heap. A leak over a million runs shows far above it. */
const maxGrowthMb = 60;

export async function measureMemory(
  server: Server,
  workload: Workload,
  options: Options,
  report: Report,
): Promise<Result> {
  const { runs } = options;
  const stage = await setStage(server, workload, options);
  const pids = [...(await pidsBelow(stage.up.pid)), ...stage.workers.map(({ pid }) => pid)];
  const samples: Sample[] = [];
  while (stage.load.asked() < runs) {
    const { perSecond } = await stage.load.run(options.quick ? 300 : sliceMs);
    const resident = (await Promise.all(pids.map(residentBytes))).reduce((sum, bytes) => sum + bytes, 0) / 2 ** 20;
    const heap = ((await stage.up.metrics()).get('millrace_nodejs_heap_size_used_bytes') ?? 0) / 2 ** 20;
    samples.push({ runs: stage.load.asked(), perSecond, resident, heap });
    report.progress(
      `  ${stage.load.asked()} runs: ${Math.round(resident)} MB resident, ${Math.round(heap)} MB of heap`,
    );
  }
  await stage.clear();
  report.line(`Memory over ${runs.toLocaleString('en-US')} runs (${workload.title}), in MB`);
  const every = Math.max(1, Math.floor(samples.length / steps));
  report.table(
    ['runs', 'runs/s', 'resident, all of Node', 'heap of up'],
    samples
      .filter((_, i) => i % every === 0 || i === samples.length - 1)
      .map((s) => [s.runs, Math.round(s.perSecond), Math.round(s.resident), Math.round(s.heap)]),
  );
  const rate = mean(samples.map(({ perSecond }) => perSecond));
  return { rate, raw: null, ratio: null, percentiles: {}, aims: [growth(samples)], details: samples };
}

/** Compares the second quarter, when caches are full, with the last. */
function growth(samples: readonly Sample[]): Aim {
  const quarter = Math.ceil(samples.length / 4);
  const average = (part: readonly Sample[]): number => mean(part.map(({ resident }) => resident));
  const grown = average(samples.slice(-quarter)) - average(samples.slice(quarter, 2 * quarter));
  const measured = Number.isNaN(grown) ? 'too few runs' : `${Math.round(grown)} MB`;
  return {
    what: 'growth from the second quarter to the last',
    aim: `< ${maxGrowthMb} MB`,
    measured,
    met: !(grown >= maxGrowthMb),
  };
}
