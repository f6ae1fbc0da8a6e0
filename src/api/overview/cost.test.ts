/** The cost of the overview does not depend on the size of the tables: no statement scans one, or reads more than its bound. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aliveScheduler, aliveWorker } from '../../../test/harness/explaining.ts';
import { makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { planModes, scansOf, statementsOf } from '../../../test/harness/scans.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { activityHandlers } from './activity.ts';
import { countedUpTo } from './endpoints.ts';
import { overviewHandlers } from './handlers.ts';

const oldRuns = 30_000;
const queuedRuns = 2 * countedUpTo;
const large = new Set(['run', 'live', 'retry', 'token', 'event', 'firing', 'activity']);

let api: TenantApi;
let job: MadeJob;

beforeAll(async () => {
  api = await makeTenantApi();
  aliveScheduler(api);
  aliveWorker(api);
  job = await makeJob(api, {
    triggers: [{ name: 't', start: '2026-01-01T00:00:00Z', period: '1m', catchup: 'none' }],
    tasks: ['a', 'b', 'c', 'd'].map((name) => ({ name })),
  });
  api.nextTriggers.push(job.triggers['t'] ?? '');
  await fillHistory();
  await fillQueue();
  for (const table of large) await api.pool.query(`analyze ${table}`);
}, 1_200_000);
afterAll(() => api.close());

/** A third of the runs failed, of every task except one. */
async function fillHistory(): Promise<void> {
  await api.db.exec(sql`
    insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, finished_at)
    select new_id(), task.id, at.instant, 'token', 1, 1, 'normal', 1,
           case when n % 3 = 0 and task.name <> 'd' then 'failure' else 'success' end::run_state, at.instant, at.instant
      from task, generate_series(1, ${oldRuns / 4}) as n,
           lateral (select timestamptz '2026-01-01' + n * interval '1 minute' as instant) as at`);
  await api.db.exec(sql`
    insert into retry (run_id, task_id, instant, attempt, priority, due_at)
    select id, task_id, instant, 2, 'normal', finished_at from run`);
  await api.db.exec(sql`
    insert into firing (trigger_id, instant, cause)
    select ${job.triggers['t']}, timestamptz '2026-01-01' + n * interval '1 minute', 'schedule'
      from generate_series(1, ${oldRuns}) as n`);
  await api.db.exec(sql`
    insert into activity (at, success, failure, timeout, error, cancelled, started, wait, worst_wait, fired, late, worst_late)
    select timestamptz '2026-01-01' + n * interval '1 minute', 1, 1, 1, 1, 1, 4, '4s', '1s', 1, '1s', '1s'
      from generate_series(1, ${oldRuns}) as n`);
}

/** The same number of running, ready, parked and gated runs. */
async function fillQueue(): Promise<void> {
  const kinds = [
    sql`${newId()}::uuid, false, null::uuid`,
    sql`null::uuid, false, null::uuid`,
    sql`null::uuid, true, null::uuid`,
    sql`null::uuid, false, ${newId()}::uuid`,
    sql`null::uuid, true, ${newId()}::uuid`,
  ];
  for (const kind of kinds)
    await api.db.exec(sql`
      insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at, worker_id, parked, gate)
      select new_id(), ${job.tasks['a']}, timestamptz '2027-01-01' + n * interval '1 minute', 1, 1, 'normal',
             'none:' || n % 10, timestamptz '2026-01-01' + n * interval '1 second',
             timestamptz '2026-01-01' + n * interval '1 second', ${kind}
        from generate_series(1, ${queuedRuns}) as n`);
}

const request = new Request('http://tenant');
const rest = { params: undefined, body: undefined, caller: keyOf('viewer'), request, signal: request.signal };

it.each<[string, (db: Db) => Promise<unknown>, Record<string, number>]>([
  [
    'the overview',
    (db) => overviewHandlers['GET /api/overview']({ ...rest, query: undefined }, { ...api.ctx, db }),
    { live: 4 * countedUpTo + 5_000, retry: countedUpTo + 100, run: 1_200, firing: 10 },
  ],
  [
    'the last hour',
    (db) => {
      const query = { minutes: 60, until: new Date('2026-01-10T00:00:00Z') };
      return activityHandlers['GET /api/activity']({ ...rest, query }, { ...api.ctx, db });
    },
    { activity: 60 },
  ],
])('reading %s costs a bounded number of rows', async (_, ask, most) => {
  const statements = await statementsOf(api.db, ask);
  expect(statements.length).toBeLessThanOrEqual(7);
  for (const mode of planModes) {
    const scans = (await Promise.all(statements.map((each) => scansOf(api.pool, large, each, mode)))).flat();
    expect(scans.filter(({ type }) => type === 'Seq Scan').map(({ table }) => table)).toEqual([]);
    const read: Record<string, number> = {};
    for (const scan of scans) read[scan.table] = (read[scan.table] ?? 0) + scan.read;
    expect(Object.keys(read).toSorted()).toEqual(Object.keys(most).toSorted());
    for (const [table, bound] of Object.entries(most)) expect(read[table], table).toBeLessThanOrEqual(bound);
  }
});
