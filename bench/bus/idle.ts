/** One event at a time on an idle bus, with batches of 1, against the time of one commit. */
import { measureCommits, restMs } from '../commits.ts';
import { aim, figure, type Report, type PartResult } from '../report.ts';
import { type BusStage, trickle } from './stage.ts';

export async function measureIdle(stage: BusStage, report: Report): Promise<PartResult> {
  const { options, server } = stage;
  report.progress('idle: publish → receipt');
  const paths = await stage.subscribe({ topic: 'stock', count: 1, max: 1, timeout: 0 });
  const commit = await measureCommits(server.address('bench_append'), options);
  const count = options.quick ? 5 : 300;
  const { accepted, received } = await trickle(stage, stage.target('stock'), paths, { count, restMs });
  report.line('Idle, one event at a time, batches of 1');
  const timed = { commit, 'publish answered': accepted, 'publish → receipt': received };
  report.table(
    ['', 'p50 ms', 'p99 ms', 'p50 in commits'],
    Object.entries(timed).map(([name, times]) => [
      name,
      figure(times.p50),
      figure(times.p99),
      (times.p50 / commit.p50).toFixed(1),
    ]),
  );
  return {
    aims: [aim('idle publish → receipt, p50, in commits', received.p50 / commit.p50, { atMost: 12 }, ' ×')],
    percentiles: { commit, accepted, received },
    details: {},
  };
}
