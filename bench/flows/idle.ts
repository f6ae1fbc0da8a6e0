/** One execution at a time on an idle system, from launch to end: the product, DBOS and one committed row take turns. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openCommits, restMs, timed } from '../commits.ts';
import { percentiles } from '../percentiles.ts';
import { aim, figure, type PartResult } from '../report.ts';
import type { FlowBench } from './flows.ts';
import { input, three } from './three-steps.ts';

const samples = 300;
const warmUps = 20;

export async function measureIdle(bench: FlowBench): Promise<PartResult> {
  const { stage, options, report } = bench;
  report.progress('idle');
  const rival = await bench.rival();
  const commits = await openCommits(stage.address);
  const sides = {
    idle: () => timed(async () => void (await stage.run(three.flow, input))),
    rivalIdle: () => rival.time(),
    commit: () => timed(commits.make),
  } as const;
  const taken = { idle: [] as number[], rivalIdle: [] as number[], commit: [] as number[] };
  for (let i = -warmUps; i < (options.quick ? 5 : samples); i++) {
    for (const [side, time] of Object.entries(sides)) {
      const ms = await time();
      if (i >= 0) taken[side as keyof typeof taken].push(ms);
      await sleep(restMs);
    }
  }
  await commits.close();
  const times = {
    idle: percentiles(taken.idle),
    rivalIdle: percentiles(taken.rivalIdle),
    commit: percentiles(taken.commit),
  };
  const names = { idle: 'Millrace', rivalIdle: 'DBOS', commit: 'for comparison: one row committed' } as const;
  report.line('The whole execution on an idle system, in ms');
  report.table(
    ['', 'n', 'p50', 'p90', 'p99', 'max'],
    (['idle', 'rivalIdle', 'commit'] as const).map((side) => {
      const { n, p50, p90, p99, max } = times[side];
      return [names[side], n, ...[p50, p90, p99, max].map(figure)];
    }),
  );
  return {
    aims: [aim('idle p50, against DBOS', times.idle.p50 / times.rivalIdle.p50, { atMost: 0.6 }, ' ×')],
    percentiles: times,
    details: {},
  };
}
