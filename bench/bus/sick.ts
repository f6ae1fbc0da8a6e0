/**
 * What receivers notice of a sick one among them: nine subscribers of a topic, and a tenth that never answers, or that answers one
 * byte a second. Rounds of all well, one hanging and one dripping, so that all see the same machine.
 */
import { percentiles, type Percentiles } from '../percentiles.ts';
import { aim, figure, type Report, type PartResult } from '../report.ts';
import type { Behaviour } from './receiver.ts';
import { type BusStage, sampleTrickle } from './stage.ts';

const wellSubscribers = 9;
const limits = { max: 100, timeout: 0 } as const;
const restMs = 20;
const rounds = 4;

const states = { well: 'answer', hangs: 'hang', drips: 'drip' } as const satisfies Record<string, Behaviour>;
type State = keyof typeof states;

export async function measureSick(stage: BusStage, report: Report): Promise<PartResult> {
  const { options } = stage;
  const paths = await stage.subscribe({ topic: 'news', count: wellSubscribers, ...limits });
  const ms = (options.seconds * 1_000) / rounds;
  const samples: Record<State, number[]> = { well: [], hangs: [], drips: [] };
  report.progress('sick receivers: warm up');
  await sampleTrickle(stage, stage.target('news'), paths, { ms: ms / 4, restMs });
  for (let round = 1; round <= rounds; round++) {
    for (const state of Object.keys(states) as State[]) {
      const remove = await stage.subscribeSick({ topic: 'news', behaviour: states[state], ...limits });
      samples[state].push(...(await sampleTrickle(stage, stage.target('news'), paths, { ms, restMs })));
      await remove();
    }
    report.progress(`sick receivers, round ${round} of ${rounds}`);
  }
  const { well, hangs, drips } = of(samples);
  report.line(`Publish → receipt in ms, of ${wellSubscribers} receivers beside a tenth`);
  report.table(
    ['the tenth', 'n', 'p50', 'p90', 'p99', 'max', 'p99 ÷ well'],
    Object.entries({ 'is well': well, hangs, drips }).map(([name, p]) => [
      name,
      p.n,
      ...[p.p50, p.p90, p.p99, p.max, p.p99 / well.p99].map(figure),
    ]),
  );
  return {
    aims: [
      aim('p99 of the others while one receiver hangs', hangs.p99 / well.p99, { atMost: 1.5 }, ' ×'),
      aim('the same while one drips', drips.p99 / well.p99, { atMost: 1.5 }, ' ×'),
    ],
    percentiles: { well, hangs, drips },
    details: {},
  };
}

function of(samples: Readonly<Record<State, number[]>>): Readonly<Record<State, Percentiles>> {
  const { well, hangs, drips } = samples;
  return { well: percentiles(well), hangs: percentiles(hangs), drips: percentiles(drips) };
}
