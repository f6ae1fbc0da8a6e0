/**
 * Hand-overs of runs beside a flood of the bus: in windows without a flood, with one in the same tenant, and with one in another tenant.
 * The worker is this process, over HTTP. The floods are bulks of 100, in and out, as fast as they are answered.
 */
import { overNetwork } from '../../src/worker/transport.ts';
import { startPairs } from '../pairs.ts';
import { percentiles, type Percentiles } from '../percentiles.ts';
import { aim, figure, type Report, type PartResult } from '../report.ts';
import { bulk, type BusStage, floodAndDrain } from './stage.ts';

const warmUps = 50;
const rounds = 3;
const topic = 'floods';
const other = 'bench_other';

const kinds = ['alone', 'same', 'another'] as const;
type Kind = (typeof kinds)[number];

export async function measureBeside(stage: BusStage, report: Report): Promise<PartResult> {
  const { options, tenant, up } = stage;
  report.progress('hand-over beside a flood: warm up');
  await stage.addTenant(other);
  const paths = {
    same: await stage.subscribe({ topic, count: 1, ...bulk.limits }),
    another: await stage.subscribe({ topic, count: 1, tenant: other, ...bulk.limits }),
  };
  const { key } = await up.call('POST /api/keys', { body: { name: 'worker', role: 'worker' } });
  const pairs = await startPairs({ carry: overNetwork(), url: up.url, key }, tenant);
  await pairs.handOver({ count: options.quick ? 5 : warmUps });
  const ms = (options.seconds * 1_000) / rounds;
  const samples: Record<Kind, number[]> = { alone: [], same: [], another: [] };
  const floods: Record<Kind, number> = { alone: 0, same: 0, another: 0 };
  for (let round = 1; round <= rounds; round++) {
    for (const kind of kinds) {
      const flood =
        kind === 'alone'
          ? undefined
          : floodAndDrain(
              stage,
              { ...stage.target(topic, kind === 'another' ? other : undefined), ...bulk.flood, ms },
              paths[kind],
            );
      samples[kind].push(...(await pairs.handOver({ ms })));
      floods[kind] += ((await flood)?.in ?? 0) / rounds;
    }
    report.progress(`hand-over beside a flood, round ${round} of ${rounds}`);
  }
  await pairs.stop();
  return conclude(samples, floods, report);
}

function conclude(
  samples: Readonly<Record<Kind, number[]>>,
  floods: Readonly<Record<Kind, number>>,
  report: Report,
): PartResult {
  const [alone, same, another] = kinds.map((kind) => percentiles(samples[kind])) as [
    Percentiles,
    Percentiles,
    Percentiles,
  ];
  report.line('Hand-over of a run over HTTP, in ms, beside a flood of the bus');
  report.table(
    ['flood in', 'events/s', 'n', 'p50', 'p90', 'p99', 'p50 ÷ alone', 'p99 ÷ alone'],
    Object.entries({
      'no tenant': [alone, floods.alone],
      'the same tenant': [same, floods.same],
      'another tenant': [another, floods.another],
    } as const).map(([name, [p, events]]) => [
      name,
      figure(events),
      p.n,
      ...[p.p50, p.p90, p.p99, p.p50 / alone.p50, p.p99 / alone.p99].map(figure),
    ]),
  );
  return {
    aims: [
      aim('hand-over beside a flood of the same tenant, p50', same.p50 / alone.p50, { atMost: 2 }, ' ×'),
      aim('the same with a flood of another tenant', another.p50 / alone.p50, { atMost: 1.3 }, ' ×'),
    ],
    percentiles: { handoverAlone: alone, handoverSame: same, handoverAnother: another },
    details: { floods },
  };
}
