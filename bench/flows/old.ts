/**
 * The cost of an execution in a tenant that has many old ones, against one in a tenant without: both belong to one conductor on one server,
 * and take turns. The cost is processor time, of Node and PostgreSQL together, because rates change with the machine from turn to turn.
 */
import { Client } from 'pg';
import { clientConfig } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { addEventPartitions, copyStatement } from '../copied-rows.ts';
import { mean } from '../percentiles.ts';
import { aim, figure, type PartResult, type Report } from '../report.ts';
import { Tally } from '../tally.ts';
import type { FlowBench } from './flows.ts';
import type { FlowTenant } from './stage.ts';
import { closedLoop, input, three } from './three-steps.ts';

const usualCount = 2_000_000;
const turns = 4;
const perStatement = 50_000;
const writers = 2;
const ageDays = 10;

export async function measureOld({ server, stage, options, report }: FlowBench): Promise<PartResult> {
  const { quick, seconds } = options;
  const count = options.old || (quick ? 1_000 : usualCount);
  report.progress(`adding ${count.toLocaleString('en-US')} old executions`);
  const aged = await stage.addTenant('aged');
  await aged.apply(three);
  await addOldExecutions(aged, await aged.run(three.flow, input), { count, report });
  const postgres = server.pid === undefined ? [] : [server.pid];
  const sides = [
    { name: 'none', tenant: stage, tally: new Tally({ postgres }) },
    { name: count.toLocaleString('en-US'), tenant: aged, tally: new Tally({ postgres }) },
  ] as const;
  for (const { tenant } of sides) await closedLoop(() => tenant.run(three.flow, input), quick ? 100 : 1_000);
  for (let turn = 0; turn < (quick ? 1 : turns); turn++)
    for (const { tenant, tally } of sides)
      await tally.add(() => closedLoop(() => tenant.run(three.flow, input), (seconds * 1_000) / turns));
  await aged.verify({ others: count });
  const rows = sides.map(({ name, tally }) => {
    const { bench = 0, postgres: server = 0 } = tally.cpu();
    return { name, rate: mean(tally.rates), bench, server };
  });
  report.line('Beside old executions');
  report.table(
    ['old executions', 'per second', 'ms of Node per 1,000', 'ms of PostgreSQL'],
    rows.map(({ name, rate, bench, server }) => [name, ...[rate, bench, server].map(figure)]),
  );
  const [empty, full] = rows.map(({ bench, server }) => bench + server);
  const more = ((full ?? Number.NaN) / (empty ?? Number.NaN) - 1) * 100;
  const what = `processor time per execution beside ${count.toLocaleString('en-US')} old ones`;
  return { aims: [aim(what, more, { atMost: 10 }, ' % more')], details: rows };
}

interface Adding {
  readonly count: number;
  readonly report: Report;
}

/** Copies of an execution that the product has made, each with an id of its own, with heads, commits and events. */
async function addOldExecutions({ address }: FlowTenant, sample: string, { count, report }: Adding): Promise<void> {
  const statement = await withClient(address, async (client) => {
    await client.query('set search_path to millrace');
    await addEventPartitions(client, 2 * count);
    return copies(client, sample);
  });
  let added = 0;
  const write = async (): Promise<void> => {
    const client = new Client(clientConfig(address, 'millrace bench old'));
    await client.connect();
    await client.query('set search_path to millrace; set synchronous_commit to off');
    for (let from = added; from < count; from = added) {
      const part = Math.min(perStatement, count - from);
      added += part;
      await client.query(statement, [from, part]);
    }
    await client.end();
  };
  await Promise.all(Array.from({ length: writers }, write));
  report.progress('vacuum');
  await withClient(address, async (client) => {
    await client.query('vacuum analyze');
    await client.query('checkpoint');
  });
}

/** Ids are those of the time of their execution, in ms: new ones come after them, as in a tenant that is old. */
async function copies(client: Client, sample: string): Promise<string> {
  const from = `made u`;
  const aged = { execution_id: 'u.id', at: 'u.at' };
  const times = { created_at: 'u.at', updated_at: 'u.at', ended_at: 'u.at' };
  const event = { seq: `nextval('event_seq')`, subject: 'u.id', at: 'u.at' };
  const rowsOf = (table: string, key: string): string => `(select * from ${table} where ${key} = '${sample}')`;
  const heads = await copyStatement(client, {
    table: 'execution',
    given: { id: 'u.id', ...times },
    from,
    sample: rowsOf('execution', 'id'),
  });
  const commits = await copyStatement(client, {
    table: 'commit',
    given: aged,
    from,
    sample: rowsOf('commit', 'execution_id'),
  });
  const events = await copyStatement(client, {
    table: 'event',
    given: event,
    from,
    sample: rowsOf('event', 'subject'),
  });
  return `
    with made as materialized (
      select (lpad(to_hex((extract(epoch from m.at) * 1000)::bigint), 12, '0') || '7' || substr(m.noise, 1, 3) || '8'
              || substr(m.noise, 4, 15))::uuid as id, m.at
        from (select statement_timestamp() - make_interval(days => ${ageDays}) + n * interval '1 ms' / 10 as at,
                     md5(random()::text) as noise
                from generate_series($1::integer, $1::integer + $2::integer - 1) as n) as m
    ),
    heads as (${heads}),
    events as (${events})
    ${commits}`;
}
