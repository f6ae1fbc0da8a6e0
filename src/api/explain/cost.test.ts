/** The cost of explanations does not depend on the size of the tables: no statement scans one, or reads more than its bound. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aliveScheduler, aliveWorker, claimTask } from '../../../test/harness/explaining.ts';
import { activate, finish, fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { planModes, scansOf, statementsOf } from '../../../test/harness/scans.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { maxCounted } from './queries.ts';
import { explainHandlers } from './handlers.ts';

const oldRuns = 30_000;
const queuedRuns = 20_000;
const large = new Set(['run', 'live', 'token', 'event', 'firing']);

let api: TenantApi;
let job: MadeJob;
let finished: string;
let queued: string;
let gated: string;

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;

beforeAll(async () => {
  api = await makeTenantApi();
  aliveScheduler(api);
  aliveWorker(api);
  job = await makeJob(api, {
    triggers: [{ name: 't', start: '2000-01-01T00:00:00Z', period: '1m', catchup: 'none' }],
    tasks: [
      { name: 'a', depends: ['trigger/t'] },
      { name: 'b', depends: ['task/a'] },
      { name: 'c', depends: ['task/a', 'task/b'] },
      { name: 'p', pool: 'x' },
    ],
  });
  await fire(api, job.triggers['t'], day(1));
  await finish(api, await claimTask(api, job.tasks['a']));
  const ended = await claimTask(api, job.tasks['b']);
  await finish(api, ended);
  finished = ended[0]?.id ?? '';
  await fillHistory();
  await fillQueue();
  queued = await activate(api, job.tasks['a'], day(5));
  ({ id: gated } = await api.db.one<{ id: string }>(
    sql`select id from live where gate is not null order by rank desc limit 1`,
  ));
  for (const table of large) await api.pool.query(`analyze ${table}`);
}, 1_200_000);
afterAll(() => api.close());

/** Runs of every task at this number of instants. */
async function fillHistory(): Promise<void> {
  const old = sql`
    task, generate_series(1, ${oldRuns / 5}) as n,
    lateral (select timestamptz '2001-01-01' + n * interval '1 minute' as instant) as at`;
  await api.db.exec(sql`
    insert into token (task_id, instant, count, fire, reach, priority)
    select task.id, at.instant, 0, 1, 1, 'normal' from ${old}`);
  await api.db.exec(sql`
    insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, finished_at)
    select new_id(), task.id, at.instant, 'token', 1, 1, 'normal', 1, 'success', at.instant, at.instant from ${old}`);
  await api.db.exec(sql`
    insert into event (seq, topic_id, type, subject, actor, at, body)
    select nextval('event_seq'), 3, 'run.created', run.id, 'scheduler', run.queued_at, '{}' from run`);
  await api.db.exec(sql`
    insert into firing (trigger_id, instant, cause)
    select ${job.triggers['t']}, timestamptz '2001-01-01' + n * interval '1 minute', 'schedule'
      from generate_series(1, ${oldRuns / 5}) as n`);
}

/** A long lane, and the same number of runs at a full pool. */
async function fillQueue(): Promise<void> {
  await api.db.exec(sql`update gate set used = capacity where name = 'x'`);
  await api.db.exec(sql`
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at, gate)
    select new_id(), task.id, timestamptz '2027-01-01' + n * interval '1 minute', 1, 1, 'normal', task.lane,
           timestamptz '2026-01-01' + n * interval '1 second', '2026-01-01', task.gates[1]
      from task, generate_series(1, ${queuedRuns}) as n
     where task.id in (${job.tasks['a']}, ${job.tasks['p']})`);
}

const caller = keyOf('viewer');
const request = new Request('http://tenant');
const rest = { query: {}, body: undefined, caller, request, signal: request.signal };

const ofRun = (id: string) => (db: Db) =>
  explainHandlers['GET /api/explain/run/{id}']({ ...rest, params: { id }, query: undefined }, { ...api.ctx, db });
const ofToken = (task: string, instant?: string) => (db: Db) =>
  explainHandlers['GET /api/explain/token/{id}'](
    {
      ...rest,
      params: { id: { task: job.tasks[task] ?? '', instant: instant === undefined ? undefined : new Date(instant) } },
      query: undefined,
    },
    { ...api.ctx, db },
  );
const ofTrigger = (instant?: string) => (db: Db) =>
  explainHandlers['GET /api/explain/trigger/{id}'](
    {
      ...rest,
      params: { id: job.triggers['t'] ?? '' },
      query: { instant: instant === undefined ? undefined : new Date(instant) },
    },
    { ...api.ctx, db },
  );

it.each<[string, () => (db: Db) => Promise<unknown>, number]>([
  ['a finished run', () => ofRun(finished), 100],
  ['a run far back in its lane', () => ofRun(queued), maxCounted + 100],
  ['a run that waits at a pool', () => ofRun(gated), 2 * maxCounted + 100],
  ['a token without its instant', () => ofToken('b'), 100],
  ['a token that waits', () => ofToken('c', day(7)), 100],
  ['a token that has run', () => ofToken('b', day(1)), 100],
  ['a trigger', () => ofTrigger(), 100],
  ['an instant of a trigger', () => ofTrigger(day(2)), 100],
])('explaining %s reads a bounded number of rows', async (_, ask, most) => {
  const statements = await statementsOf(api.db, ask());
  expect(statements.length).toBeLessThanOrEqual(8);
  for (const mode of planModes) {
    const scans = (await Promise.all(statements.map((each) => scansOf(api.pool, large, each, mode)))).flat();
    expect(scans.filter(({ type }) => type === 'Seq Scan').map(({ table }) => table)).toEqual([]);
    expect(scans.reduce((sum, scan) => sum + scan.read, 0)).toBeLessThanOrEqual(most);
  }
});
