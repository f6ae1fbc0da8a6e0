/** What a scheduler says about the flows of its tenant, on a real database. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { statementsOf } from '../../test/harness/scans.ts';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { readFlowsOutlook } from './queries.ts';

let database: TenantDatabase;
beforeAll(async () => {
  database = await makeTenantDatabase();
});
afterAll(() => database.close());

const now = new Date('2026-06-01T00:00:00Z');
const later = (ms: number): Date => new Date(now.getTime() + ms);

async function makeExecution(status: number): Promise<string> {
  const id = newId();
  await database.db.exec(sql`
    insert into execution (id, rev, status, flow_id, version, format, created_at, updated_at)
    values (${id}, 1, ${status}, ${newId()}, 1, 1, ${now}, ${now})`);
  return id;
}

it('the outlook names the next timer of executions that are not paused, and messages whose time has come', async () => {
  expect(await readFlowsOutlook(database.db, now)).toEqual({ inbox: false, nextDueAt: null });
  const [paused, live] = [await makeExecution(1), await makeExecution(0)];
  await database.db.exec(sql`
    insert into timer (execution_id, name, generation, due_at)
    values (${paused}, 'a', 1, ${later(-1_000)}), (${live}, 'a', 1, ${later(9_000)}), (${live}, 'b', 2, ${later(8_000)})`);
  await database.db.exec(sql`
    insert into inbox (id, execution_id, at, body) values ('1', ${live}, ${later(1_000)}, '{}')`);
  expect(await readFlowsOutlook(database.db, now)).toEqual({ inbox: false, nextDueAt: later(8_000) });
  expect(await readFlowsOutlook(database.db, later(1_000))).toMatchObject({ inbox: true });
});

it('the outlook reads few pages although many timers and messages are stored', async () => {
  const live = await makeExecution(0);
  await database.db.exec(sql`
    insert into timer (execution_id, name, generation, due_at)
    select ${live}, 't' || n, 1, ${now}::timestamptz + n * interval '1 s' from generate_series(1, 20000) as n`);
  await database.db.exec(sql`
    insert into inbox (id, execution_id, at, body) select 'm' || n, ${live}, ${now}, '{}' from generate_series(1, 20000) as n`);
  await database.pool.query('analyze');
  const [statement] = await statementsOf(database.db, (db) => readFlowsOutlook(db, now));
  const { text, values } = (statement ?? sql``).compile();
  const { rows } = await database.pool.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) ${text}`,
    [...values],
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan ?? {};
  expect((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)).toBeLessThanOrEqual(40);
});
