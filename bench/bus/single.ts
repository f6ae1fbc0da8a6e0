/** Single events over many connections, in turns with the *bare* server. */
import { mean } from '../percentiles.ts';
import { aim, figure, type Report, type PartResult } from '../report.ts';
import { type BusStage, turnsOf } from './stage.ts';

const connections = 64;
const names = ['bare', 'product'] as const;
/** Turns are short, so that a checkpoint or a vacuum meets both. */
const turnParts = 4;

export async function measureSingle(stage: BusStage, report: Report): Promise<PartResult> {
  const { options, publisher } = stage;
  const { turns, ms } = turnsOf(options);
  const targets = { bare: stage.bare, product: stage.target('returns') };
  const rates = { bare: [] as number[], product: [] as number[] };
  const flood = async (name: (typeof names)[number], forMs: number): Promise<number> => {
    const flooded = await publisher.flood({ ...targets[name], perPost: 1, connections, ms: forMs });
    return (flooded.events / flooded.ms) * 1_000;
  };
  report.progress('single: warm up');
  for (const name of names) await flood(name, ms / 4);
  for (let turn = 1; turn <= turns * 2; turn++) {
    for (const name of names) rates[name].push(await flood(name, ms / turnParts));
    const last = (name: (typeof names)[number]): string => figure(rates[name].at(-1) ?? 0);
    report.progress(`single, turn ${turn} of ${turns * 2}: bare ${last('bare')}, product ${last('product')}`);
  }
  const [product, bare] = [mean(rates.product), mean(rates.bare)];
  report.line(`Single events over ${connections} connections, per second`);
  report.table(
    ['', 'events/s', 'of bare'],
    [
      ['bare', figure(bare), ''],
      ['product', figure(product), (product / bare).toFixed(2)],
    ],
  );
  return {
    aims: [aim('single publish, against bare', product / bare, { atLeast: 0.4 }, ' ×')],
    details: { product, bare },
  };
}
