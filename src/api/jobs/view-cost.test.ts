/** The cost of the pages of jobs, runs and the audit does not depend on the size of the tables: no statement scans one. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { activate, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { planModes, scansOf, statementsOf } from '../../../test/harness/scans.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { auditOf } from '../audit/handlers.ts';
import { jobViewHandlers } from './views.ts';
import { runViewHandlers } from '../runs/views.ts';
import { search } from '../overview/search.ts';

const instants = 8_000;
const queued = 20_000;
const queuedOfOthers = 500;
const large = new Set(['run', 'live', 'retry', 'token', 'event', 'firing']);

let api: TenantApi;
let job: MadeJob;
let run: string;

beforeAll(async () => {
  api = await makeTenantApi();
  const tasks = ['a', 'b', 'c', 'd'].map((name) => ({ name }));
  for (let n = 0; n < 10; n++) await makeJob(api, { project: 'others', name: `other ${n}`, tasks });
  job = await makeJob(api, { project: 'ours', name: 'ours', tasks });
  run = await activate(api, job.tasks['a'], '2026-01-01T00:00:00.000Z');
  await fillHistory();
  for (const table of large) await api.pool.query(`analyze ${table}`);
}, 600_000);
afterAll(() => api.close());

/**
 * Finished runs of all tasks, with events of machines. One task has many queued runs, another many retries, and tasks of
 * other jobs have some hundreds of queued runs each.
 */
async function fillHistory(): Promise<void> {
  const at = sql`generate_series(1, ${instants / 4}) as n,
    lateral (select timestamptz '2025-01-01' + n * interval '1 minute' as instant) as at`;
  await api.db.exec(sql`
    insert into token (task_id, instant, count, fire, reach, priority)
    select task.id, at.instant, 0, 1, 1, 'normal' from task, ${at}`);
  await api.db.exec(sql`
    insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, finished_at)
    select new_id(), task.id, at.instant, 'token', 1, 1, 'normal', 1,
           case when n % 3 = 0 then 'failure' else 'success' end::run_state, at.instant, at.instant from task, ${at}`);
  await api.db.exec(sql`
    insert into event (seq, topic_id, type, subject, actor, at, body)
    select nextval('event_seq'), 3, 'run.finished', run.id, 'worker', run.queued_at, '{}' from run`);
  await api.db.exec(sql`
    insert into retry (run_id, task_id, instant, attempt, priority, due_at)
    select id, task_id, instant, 2, 'normal', finished_at from run where task_id = ${job.tasks['b']}`);
  await api.db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
    select new_id(), ${job.tasks['c']}, timestamptz '2025-01-01' + n * interval '1 minute', 1, 1, 'normal', 'none:default',
           '2025-01-01', '2025-01-01'
      from generate_series(1, ${queued}) as n`);
  await api.db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
    select new_id(), task.id, timestamptz '2027-01-01' + n * interval '1 minute', 1, 1, 'normal', 'none:default',
           '2025-01-01', '2025-01-01'
      from generate_series(1, ${queuedOfOthers}) as n, task
     where task.job_id <> ${job.id}`);
}

const request = new Request('http://tenant');
const rest = { body: undefined, caller: keyOf('viewer'), request, signal: request.signal };
const none = { ...rest, params: undefined };
const glance = { q: undefined, project: undefined, show: 'all' as const, limit: 50, cursor: undefined };
const everything = { limit: 20, before: undefined, actor: undefined, topic: undefined, machines: false };

it.each<[string, (db: Db) => Promise<unknown>, Record<string, number>]>([
  [
    'a page of the grid',
    (db) => {
      const query = { limit: 50, before: new Date('2025-01-02T00:00:00Z'), after: undefined };
      return jobViewHandlers['GET /api/jobs/{id}/grid']({ ...rest, params: { id: job.id }, query }, { ...api.ctx, db });
    },
    { token: 500, live: 60, retry: 60, run: 200 },
  ],
  [
    'the overview of jobs',
    (db) => jobViewHandlers['GET /api/jobs/overview']({ ...none, query: glance }, { ...api.ctx, db }),
    { token: 3_000, live: 1_200, retry: 200, run: 3_000 },
  ],
  [
    'failing jobs',
    (db) =>
      jobViewHandlers['GET /api/jobs/overview'](
        { ...none, query: { ...glance, show: 'failing' as const, q: 'none of them' } },
        { ...api.ctx, db },
      ),
    { run: 1_200, live: 300, retry: 300 },
  ],
  [
    "a run's history",
    (db) =>
      runViewHandlers['GET /api/runs/{id}/history'](
        { ...rest, params: { id: run }, query: undefined },
        { ...api.ctx, db },
      ),
    { live: 10, event: 10 },
  ],
  [
    "a run's attempts",
    (db) =>
      runViewHandlers['GET /api/runs/{id}/attempts'](
        { ...rest, params: { id: run }, query: undefined },
        { ...api.ctx, db },
      ),
    { live: 10 },
  ],
  ['the audit', (db) => auditOf({ ...none, query: everything }, { ...api.ctx, db }), { event: 21, live: 21 }],
  ['a search', (db) => search({ ...none, query: { q: 'other b', limit: 20 } }, { ...api.ctx, db }), {}],
])('reading %s costs a bounded number of rows', async (_, ask, most) => {
  const statements = await statementsOf(api.db, ask);
  expect(statements.length).toBeLessThanOrEqual(12);
  for (const mode of planModes) {
    const scans = (await Promise.all(statements.map((each) => scansOf(api.pool, large, each, mode)))).flat();
    expect(scans.filter(({ type }) => type === 'Seq Scan').map(({ table }) => table)).toEqual([]);
    const read: Record<string, number> = {};
    for (const scan of scans) read[scan.table] = (read[scan.table] ?? 0) + scan.read;
    expect(Object.keys(read).filter((table) => !(table in most))).toEqual([]);
    for (const [table, bound] of Object.entries(most)) expect(read[table] ?? 0, table).toBeLessThanOrEqual(bound);
  }
});
