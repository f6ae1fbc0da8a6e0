/** The looks that a scheduler takes each second cost the same however long the queue is, and whatever is known of it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeJob } from '../../test/harness/runs.ts';
import { statementsOf } from '../../test/harness/scans.ts';
import { makeTenantApi, type TenantApi } from '../../test/harness/tenant-api.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { anyWaiting, anyWithWorkers, findReadyLanes } from './queries.ts';

const queuedRuns = 20_000;
/** 8 KiB each. The queue of this test has about 400. */
const maxPages = 40;

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
  await api.pool.query('alter table live set (autovacuum_enabled = off)');
});
afterAll(() => api.close());

async function fillQueue(): Promise<void> {
  const job = await makeJob(api, { tasks: [{ name: 'a' }] });
  await api.db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
    select new_id(), ${job.tasks['a']}, timestamptz '2027-01-01' + n * interval '1 minute', 1, 1, 'normal', 'none:default',
           at, at
      from generate_series(1, ${queuedRuns}) as n, lateral (select timestamptz '2026-01-01' + n * interval '1 s' as at) as t`);
}

const looks: [string, (db: Db) => Promise<unknown>][] = [
  ['whether anything waits', anyWaiting],
  ['whether workers hold runs', anyWithWorkers],
  ['which lanes are ready', findReadyLanes],
];

describe.each(['force_custom_plan', 'force_generic_plan'])('With %s', (mode) => {
  it.each(looks)(
    'a look %s reads few pages, by a plan made while the queue was empty and by a new one',
    async (_, look) => {
      const [statement] = await statementsOf(api.db, look);
      const { text, values } = (statement ?? sql``).compile();
      await api.pool.query('truncate live');
      const client = await api.pool.connect();
      const explain = `explain (analyze, buffers, format json) execute looked${values.length === 0 ? '' : `(${values.join()})`}`;
      const pagesRead = async (): Promise<number> => {
        const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(explain);
        const { Plan: plan } = rows[0]?.['QUERY PLAN'][0] ?? { Plan: {} };
        return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0);
      };
      try {
        await client.query(`set plan_cache_mode = ${mode}; prepare looked as ${text}`);
        await pagesRead();
        await fillQueue();
        expect(await pagesRead()).toBeLessThanOrEqual(maxPages);
        await client.query(`deallocate looked; prepare looked as ${text}`);
        expect(await pagesRead()).toBeLessThanOrEqual(maxPages);
      } finally {
        client.release(true);
      }
    },
  );
});
