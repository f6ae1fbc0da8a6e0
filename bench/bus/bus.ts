/**
 * `bench -- bus`: events taken in and delivered by a real `up` with its courier, against what PostgreSQL and Node can do in the
 * same run. Publishers, receivers and the bare server are processes of their own. All take turns, so that they see the same machine.
 *
 * *Append* is the same rows written by one connection in groups of 1,000, *bare* a node:http server that appends them the same way,
 * *commit* one durable row.
 */
import { measureCommits, restMs } from '../commits.ts';
import type { Options } from '../options.ts';
import { mean, type Percentiles } from '../percentiles.ts';
import { printProfile, startProfile } from '../profile.ts';
import { aim, type Aim, figure, type Report, type Result } from '../report.ts';
import { Tally } from '../tally.ts';
import { appendFor } from './append.ts';
import { type BusStage, floodAndDrain, setBusStage, trickle } from './stage.ts';

const turnSeconds = 4;

export async function bus(options: Options, report: Report): Promise<Result> {
  const stage = await setBusStage(options);
  const bulk = await measureBulk(stage, report);
  const single = await measureSingle(stage, report);
  const idle = await measureIdle(stage, report);
  await stage.stop();
  const aims: Aim[] = [
    aim('bulk of 100, in and out, against append', bulk.one.out / bulk.append, { atLeast: 0.3 }, ' ×'),
    aim('single publish, against bare', single.product / single.bare, { atLeast: 0.4 }, ' ×'),
    aim('ingest with ten subscribers, against one', bulk.ten.in / bulk.one.in, { atLeast: 0.8 }, ' ×'),
    aim('idle publish → receipt, p50, in commits', idle.received.p50 / idle.commit.p50, { atMost: 12 }, ' ×'),
  ];
  return {
    rate: bulk.one.out,
    raw: bulk.append,
    ratio: bulk.one.out / bulk.append,
    percentiles: { commit: idle.commit, accepted: idle.accepted, received: idle.received },
    aims,
    details: { bulk, single },
  };
}

function turnsOf({ seconds }: Options): { readonly turns: number; readonly ms: number } {
  const turns = Math.max(1, Math.round(seconds / turnSeconds));
  return { turns, ms: (seconds * 1_000) / turns };
}

interface Bulk {
  readonly append: number;
  readonly one: { readonly in: number; readonly out: number };
  readonly ten: { readonly in: number; readonly out: number };
  readonly cpu: Readonly<Record<string, Record<string, number>>>;
}

const bulkSize = 100;
/** Two groups of 1,000: one is committed while the next one gathers. */
const bulkConnections = 20;

async function measureBulk(stage: BusStage, report: Report): Promise<Bulk> {
  const { options, server, up, publisher, receiver } = stage;
  const one = await stage.subscribe('orders', 1, { max: bulkSize, timeout: 500 });
  const ten = await stage.subscribe('parcels', 10, { max: bulkSize, timeout: 500 });
  const { turns, ms } = turnsOf(options);
  const flood = (topic: string, paths: readonly string[], forMs: number) =>
    floodAndDrain(stage, { ...stage.target(topic), perPost: bulkSize, connections: bulkConnections, ms: forMs }, paths);
  report.progress('bulk: warm up');
  await flood('orders', one, ms / 4);
  await flood('parcels', ten, ms / 4);
  await appendFor(stage.appender, ms / 4);
  const postgres = server.pid === undefined ? [] : [server.pid];
  const trees = { up: [up.pid], postgres, publisher: [publisher.pid], receiver: [receiver.pid] };
  const tallies = { append: new Tally({ postgres }), one: new Tally(trees), ten: new Tally(trees) };
  const ins = { one: [] as number[], ten: [] as number[] };
  if (options.profile !== undefined) await startProfile(stage.tenant.db);
  let events = 0;
  for (let turn = 1; turn <= turns; turn++) {
    await tallies.append.add(() => appendFor(stage.appender, Math.min(2_000, ms)));
    for (const [name, topic, paths] of [
      ['one', 'orders', one],
      ['ten', 'parcels', ten],
    ] as const)
      await tallies[name].add(async () => {
        const delivered = await flood(topic, paths, ms);
        ins[name].push(delivered.in);
        if (name === 'one') events += delivered.events;
        return { runs: delivered.events, perSecond: delivered.out };
      });
    const last = (rates: readonly number[]): string => figure(rates.at(-1) ?? 0);
    report.progress(
      `bulk, turn ${turn} of ${turns}: append ${last(tallies.append.rates)}, one ${last(ins.one)} in ${last(tallies.one.rates)} out, ten ${last(ins.ten)} in ${last(tallies.ten.rates)} out`,
    );
  }
  if (options.profile !== undefined) await printProfile(stage.tenant.db, events, report);
  return concludeBulk(tallies, ins, report);
}

function concludeBulk(
  tallies: Readonly<Record<'append' | 'one' | 'ten', Tally>>,
  ins: Readonly<Record<'one' | 'ten', readonly number[]>>,
  report: Report,
): Bulk {
  const append = mean(tallies.append.rates);
  const one = { in: mean(ins.one), out: mean(tallies.one.rates) };
  const ten = { in: mean(ins.ten), out: mean(tallies.ten.rates) };
  const cpu = { append: tallies.append.cpu(), one: tallies.one.cpu(), ten: tallies.ten.cpu() };
  report.line('Bulks of 100, batches of 100: events per second, and milliseconds of processor time per 1,000 events');
  report.table(
    ['', 'in', 'in and out', 'of append', 'PostgreSQL ms', 'up ms', 'publisher ms', 'receiver ms'],
    [
      ['append', figure(append), '', '', figure(cpu.append['postgres'] ?? 0), '', '', ''],
      ...(['one', 'ten'] as const).map((name) => {
        const rates = name === 'one' ? one : ten;
        const spent = ['postgres', 'up', 'publisher', 'receiver'].map((part) => figure(cpu[name][part] ?? 0));
        return [
          `${name} subscriber${name === 'one' ? '' : 's'}`,
          figure(rates.in),
          figure(rates.out),
          (rates.out / append).toFixed(2),
          ...spent,
        ];
      }),
    ],
  );
  return { append, one, ten, cpu };
}

const singleConnections = 64;

async function measureSingle(
  stage: BusStage,
  report: Report,
): Promise<{ readonly product: number; readonly bare: number }> {
  const { options, publisher } = stage;
  const { turns, ms } = turnsOf(options);
  const targets = { bare: stage.bare, product: stage.target('returns') };
  const rates = { bare: [] as number[], product: [] as number[] };
  const flood = async (name: keyof typeof targets, forMs: number): Promise<number> => {
    const flooded = await publisher.flood({ ...targets[name], perPost: 1, connections: singleConnections, ms: forMs });
    return (flooded.events / flooded.ms) * 1_000;
  };
  for (const name of ['bare', 'product'] as const) await flood(name, ms / 4);
  for (let turn = 1; turn <= turns; turn++) {
    for (const name of ['bare', 'product'] as const) rates[name].push(await flood(name, ms / 2));
    report.progress(
      `single, turn ${turn} of ${turns}: bare ${figure(rates.bare.at(-1) ?? 0)}, product ${figure(rates.product.at(-1) ?? 0)}`,
    );
  }
  const [product, bare] = [mean(rates.product), mean(rates.bare)];
  report.line(`Single events over ${singleConnections} connections, per second`);
  report.table(
    ['', 'events/s', 'of bare'],
    [
      ['bare', figure(bare), ''],
      ['product', figure(product), (product / bare).toFixed(2)],
    ],
  );
  return { product, bare };
}

interface Idle {
  readonly commit: Percentiles;
  readonly accepted: Percentiles;
  readonly received: Percentiles;
}

async function measureIdle(stage: BusStage, report: Report): Promise<Idle> {
  const { options, server } = stage;
  report.progress('idle: publish → receipt');
  const [path = ''] = await stage.subscribe('stock', 1, { max: 1, timeout: 0 });
  const commit = await measureCommits(server.address('bench_append'), options);
  const count = options.quick ? 5 : 300;
  const { accepted, received } = await trickle(stage, stage.target('stock'), path, { count, restMs });
  report.line('Idle, one event at a time, batches of 1');
  report.table(
    ['', 'p50 ms', 'p99 ms', 'p50 in commits'],
    (
      [
        ['commit', commit],
        ['publish answered', accepted],
        ['publish → receipt', received],
      ] as const
    ).map(([name, times]) => [name, figure(times.p50), figure(times.p99), (times.p50 / commit.p50).toFixed(1)]),
  );
  return { commit, accepted, received };
}
