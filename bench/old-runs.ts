/** Adds history to a tenant: millions of old runs with tokens, firings and events, inserted as fast as PostgreSQL can. */
import type { Client } from 'pg';
import type { Address } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { addEventPartitions, copyStatement } from './copied-rows.ts';

const piece = 250_000;
/** First old instant: before every instant that the load fires, and young enough that retention keeps it. */
const epoch = `timestamptz '${new Date(Date.now() - 20 * 24 * 3_600_000).toISOString()}'`;

/** Copies its rows from those that the product has written, so the tables must not be empty. */
export async function addOldRuns(tenant: Address, runs: number, progress: (line: string) => void): Promise<void> {
  await withClient(tenant, async (client) => {
    await client.query(`set search_path to millrace; set timezone to 'UTC'`);
    await client.query(`create temporary table old_task as
      select id as task_id, row_number() over (order by id) - 1 as number from task`);
    const { rows } = await client.query<{ tasks: string; triggers: string }>(
      'select (select count(*) from task)::text as tasks, (select count(*) from trigger)::text as triggers',
    );
    const [tasks, triggers] = [Number(rows[0]?.tasks), Number(rows[0]?.triggers)];
    await addEventPartitions(client, 2 * runs);
    const statements = await pieceStatements(client, tasks);
    for (let from = 0; from < runs; from += piece) {
      const until = Math.min(runs, from + piece);
      for (const statement of statements) await client.query(statement, [from, until]);
      progress(`  ${until.toLocaleString('en-US')} old runs`);
    }
    await addOldFirings(client, Math.ceil(runs / tasks), triggers);
    progress('  vacuum');
    await client.query('vacuum analyze');
    await client.query('checkpoint');
  });
}

/** The statements that insert one piece of runs; all tasks have an instant before any has the next. */
async function pieceStatements(client: Client, tasks: number): Promise<string[]> {
  const numbers = `(
    select new_id() as id, k.task_id, ${epoch} + (n / ${tasks}) * interval '1 minute' as instant
      from generate_series($1::bigint, $2::bigint - 1) n
      join old_task k on k.number = n % ${tasks}) u`;
  const key = { task_id: 'u.task_id', instant: 'u.instant' };
  const event = { seq: `nextval('event_seq')`, subject: 'u.id' };
  const like = (table: string, given: Readonly<Record<string, string>>, condition = 'true'): Promise<string> =>
    copyStatement(client, {
      table,
      given,
      from: numbers,
      sample: `(select * from ${table} where ${condition} limit 1)`,
    });
  return [
    await like('token', key),
    await like('run', { id: 'u.id', ...key }),
    await like('event', event, `type = 'run.created'`),
    await like('event', event, `type = 'run.finished'`),
  ];
}

async function addOldFirings(client: Client, instants: number, triggers: number): Promise<void> {
  const given = { trigger_id: 'u.trigger_id', instant: 'u.instant' };
  const from = `(
    select trigger.id as trigger_id, ${epoch} + n * interval '1 minute' as instant
      from trigger, generate_series(0, ${instants - 1}) n) u`;
  if (triggers > 0)
    await client.query(
      await copyStatement(client, { table: 'firing', given, from, sample: '(select * from firing limit 1)' }),
    );
}
