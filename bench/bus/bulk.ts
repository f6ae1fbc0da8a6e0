/** Bulks of 100 and batches of 100, with one subscriber and with ten, and *append*: all in turns. */
import { mean } from '../percentiles.ts';
import { printProfile, startProfile } from '../profile.ts';
import { aim, figure, type Report, type PartResult } from '../report.ts';
import { Tally } from '../tally.ts';
import { appendFor } from './append.ts';
import { bulk, type BusStage, floodAndDrain, turnsOf } from './stage.ts';

const appendMs = 2_000;
const names = ['one', 'ten'] as const;

interface Rates {
  readonly in: number;
  readonly out: number;
}

interface Bulk {
  readonly append: number;
  readonly one: Rates;
  readonly ten: Rates;
  readonly cpu: Readonly<Record<string, Record<string, number>>>;
}

export async function measureBulk(stage: BusStage, report: Report): Promise<PartResult> {
  const measured = await takeTurns(stage, report);
  const { append, one, ten } = measured;
  reportRates(measured, report);
  return {
    aims: [
      aim('bulk of 100, in and out, against append', one.out / append, { atLeast: 0.3 }, ' ×'),
      aim('ingest with ten subscribers, against one', ten.in / one.in, { atLeast: 0.8 }, ' ×'),
    ],
    details: measured,
    rates: { rate: one.out, raw: append },
  };
}

async function takeTurns(stage: BusStage, report: Report): Promise<Bulk> {
  const { options, tenant } = stage;
  const subscribers = {
    one: { topic: 'orders', paths: await stage.subscribe({ topic: 'orders', count: 1, ...bulk.limits }) },
    ten: { topic: 'parcels', paths: await stage.subscribe({ topic: 'parcels', count: 10, ...bulk.limits }) },
  };
  const { turns, ms } = turnsOf(options);
  const flood = (name: (typeof names)[number], forMs: number) =>
    floodAndDrain(
      stage,
      { ...stage.target(subscribers[name].topic), ...bulk.flood, ms: forMs },
      subscribers[name].paths,
    );
  report.progress('bulk: warm up');
  for (const name of names) await flood(name, ms / 4);
  await appendFor(stage.appender, ms / 4);
  const trees = await stage.trees();
  const tallies = { append: new Tally({ postgres: trees.postgres }), one: new Tally(trees), ten: new Tally(trees) };
  const ins = { one: [] as number[], ten: [] as number[] };
  if (options.profile !== undefined) await startProfile(tenant.db);
  let events = 0;
  for (let turn = 1; turn <= turns; turn++) {
    await tallies.append.add(() => appendFor(stage.appender, Math.min(appendMs, ms)));
    for (const name of names)
      await tallies[name].add(async () => {
        // ten copies of each event take longer to deliver
        const delivered = await flood(name, name === 'one' ? ms : ms / 2);
        ins[name].push(delivered.in);
        events += delivered.events;
        return { runs: delivered.events, perSecond: delivered.out };
      });
    const last = (rates: readonly number[]): string => figure(rates.at(-1) ?? 0);
    report.progress(
      `bulk, turn ${turn} of ${turns}: append ${last(tallies.append.rates)}, one ${last(ins.one)} in ${last(tallies.one.rates)} out, ten ${last(ins.ten)} in ${last(tallies.ten.rates)} out`,
    );
  }
  if (options.profile !== undefined) await printProfile(tenant.db, events, report);
  const ratesOf = (name: (typeof names)[number]): Rates => ({ in: mean(ins[name]), out: mean(tallies[name].rates) });
  return {
    append: mean(tallies.append.rates),
    one: ratesOf('one'),
    ten: ratesOf('ten'),
    cpu: { append: tallies.append.cpu(), one: tallies.one.cpu(), ten: tallies.ten.cpu() },
  };
}

function reportRates({ append, one, ten, cpu }: Bulk, report: Report): void {
  const processes = ['postgres', 'up', 'courier', 'publisher', 'receiver'];
  const spent = (name: string): string[] => processes.map((part) => figure(cpu[name]?.[part] ?? Number.NaN));
  report.line('Bulks of 100, batches of 100: events per second, and milliseconds of processor time per 1,000 events');
  report.table(
    ['', 'in', 'in and out', 'of append', 'PostgreSQL ms', 'up ms', 'its courier ms', 'publisher ms', 'receiver ms'],
    [
      ['append', figure(append), '', '', ...spent('append')],
      ...[['one subscriber', one, 'one'] as const, ['ten subscribers', ten, 'ten'] as const].map(
        ([title, rates, name]) => [
          title,
          figure(rates.in),
          figure(rates.out),
          (rates.out / append).toFixed(2),
          ...spent(name),
        ],
      ),
    ],
  );
}
