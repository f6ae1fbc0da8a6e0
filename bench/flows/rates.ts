/** Executions per second of the product, DBOS and the raw writer, turn by turn, each with 256 executions in flight. */
import { mean } from '../percentiles.ts';
import { printProfile, profiled, startProfile } from '../profile.ts';
import { aim, figure, type PartResult, type Report } from '../report.ts';
import { rowCounts, rowTable } from '../row-counts.ts';
import { Tally, type Turn } from '../tally.ts';
import type { FlowBench } from './flows.ts';
import { openRawExecutions } from './raw.ts';
import { closedLoop, inFlight, input, three } from './three-steps.ts';

const turns = 3;
const warmUpMs = 1_500;
const rawDatabase = 'bench_raw';

type Side = 'own' | 'rival' | 'raw';
type Sides = Readonly<Record<Side, (ms: number) => Promise<Turn>>>;
type Tallies = Readonly<Record<Side, Tally>>;

export async function measureRates(bench: FlowBench): Promise<PartResult> {
  const { server, stage, report } = bench;
  const rival = await bench.rival();
  const raw = await openRawExecutions(await server.fresh(rawDatabase));
  await raw.sample(stage.db, await stage.run(three.flow, input));
  const sides: Sides = {
    own: (ms) => closedLoop(() => stage.run(three.flow, input), ms),
    rival: (ms) => rival.loop({ ms }),
    raw: (ms) => raw.write(ms),
  };
  const tallies = await takeTurns(sides, rival.pid, bench);
  await raw.close();
  const [own, dbos, rows] = [mean(tallies.own.rates), mean(tallies.rival.rates), mean(tallies.raw.rates)];
  print(report, tallies);
  return {
    aims: [
      aim('three hosted steps, against DBOS', own / dbos, { atLeast: 10 }, ' ×'),
      aim('the same, against a raw writer', own / rows, { atLeast: 0.5 }, ' ×'),
    ],
    details: Object.fromEntries(Object.entries(tallies).map(([side, { rates }]) => [side, rates])),
    rates: { rate: own, raw: rows },
  };
}

/** What both have written in all, once all connections are closed. */
export async function printRows({ server, stage, report }: FlowBench): Promise<void> {
  report.line('Rows per 1,000 executions');
  const titles = ['table', 'inserted', 'updated', 'deleted', 'raw inserted', 'updated', 'deleted'];
  const [written, copied] = [await rowCounts(stage.address), await rowCounts(server.address(rawDatabase))];
  report.table(titles, rowTable(written, copied, 'execution'));
}

async function takeTurns(
  sides: Sides,
  rivalPid: number,
  { server, stage, options, report }: FlowBench,
): Promise<Tallies> {
  const { seconds, quick, profile } = options;
  const ms = (seconds * 1_000) / turns;
  const postgres = server.pid === undefined ? [] : [server.pid];
  const tallies = {
    own: new Tally({ postgres }),
    rival: new Tally({ postgres, rival: [rivalPid] }),
    raw: new Tally({ postgres }),
  };
  for (const warmUp of Object.values(sides)) await warmUp(quick ? 100 : warmUpMs);
  if (profile !== undefined) await startProfile(stage.db);
  const before = stage.launched();
  for (let turn = 0; turn < (quick ? 1 : turns); turn++) {
    await tallies.own.add(() => profiled(profile, `flows-${turn + 1}`, () => sides.own(ms)));
    await tallies.rival.add(() => sides.rival(ms));
    await tallies.raw.add(() => sides.raw(ms));
    const rates = Object.values(tallies).map((tally) => figure(tally.rates.at(-1) ?? 0));
    report.progress(`turn ${turn + 1}: ${rates[0]}, DBOS ${rates[1]}, raw ${rates[2]} executions/s`);
  }
  if (profile !== undefined) await printProfile(stage.db, stage.launched() - before, report);
  return tallies;
}

function print(report: Report, tallies: Tallies): void {
  report.line(`Executions of three hosted steps, ${inFlight} in flight, from launch to end`);
  const names = { own: 'Millrace', rival: 'DBOS', raw: 'raw writer of the same rows' } as const;
  const row = (side: Side): (string | number)[] => {
    const { rates } = tallies[side];
    const { bench = 0, postgres = 0, rival: node = bench } = tallies[side].cpu();
    return [names[side], ...[mean(rates), Math.min(...rates), Math.max(...rates), node, postgres].map(figure)];
  };
  report.table(
    ['', 'per second', 'least', 'most', 'ms of Node per 1,000', 'ms of PostgreSQL'],
    (['own', 'rival', 'raw'] as const).map(row),
  );
}
