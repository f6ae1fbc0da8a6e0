/**
 * Bulks of 100 in and out, in turns without and with a foreign transaction that is held open. Rows that die meanwhile cannot go, and
 * whatever looks for their successors passes over them.
 */
import { Client } from 'pg';
import { clientConfig } from '../../src/postgres/address.ts';
import { atEnd } from '../ending.ts';
import { mean } from '../percentiles.ts';
import { aim, figure, type Report, type PartResult } from '../report.ts';
import { bulk, type BusStage, floodAndDrain, turnsOf } from './stage.ts';

export async function measureSnapshot(stage: BusStage, report: Report): Promise<PartResult> {
  const { turns, ms } = turnsOf(stage.options);
  const topic = 'refunds';
  const paths = await stage.subscribe({ topic, count: 1, ...bulk.limits });
  const flood = async (forMs: number): Promise<number> =>
    (await floodAndDrain(stage, { ...stage.target(topic), ...bulk.flood, ms: forMs }, paths)).out;
  await flood(ms / 4);
  const rates = { plain: [] as number[], held: [] as number[] };
  for (let turn = 1; turn <= turns; turn++) {
    rates.plain.push(await flood(ms));
    const end = await holdSnapshot(stage);
    rates.held.push(await flood(ms));
    await end();
    report.progress(
      `snapshot, turn ${turn} of ${turns}: without ${figure(rates.plain.at(-1) ?? 0)}, with ${figure(rates.held.at(-1) ?? 0)}`,
    );
  }
  const [plain, held] = [mean(rates.plain), mean(rates.held)];
  report.line('Bulks of 100, batches of 100, in and out, with a foreign transaction held open');
  report.table(
    ['', 'events/s', 'ratio'],
    [
      ['without', figure(plain), ''],
      ['with', figure(held), (held / plain).toFixed(2)],
    ],
  );
  const ratio = held / plain;
  return {
    aims: [aim('bulk with a foreign snapshot held open, against without', ratio, { atLeast: 0.5 }, ' ×')],
    details: { plain, held },
  };
}

/** A transaction in the tenant's database that may still see every row that dies from now on. */
async function holdSnapshot({ tenant }: BusStage): Promise<() => Promise<unknown>> {
  const client = new Client(clientConfig(tenant.address, 'a foreign transaction'));
  await client.connect();
  await client.query('begin isolation level repeatable read; select count(*) from pg_class');
  return atEnd(() => client.end());
}
