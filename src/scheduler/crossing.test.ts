/** Concurrent changes: a sweep and an apply, a cancel and a failure, two sweeps, a lowered threshold. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  activate,
  cancel,
  claim,
  countOf,
  finish,
  fire,
  historyOf,
  makePipeline,
  type Pipeline,
  release,
  runsOf,
  takeBack,
} from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { onClient, sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const at = (): Date => new Date(line.time.now());

async function waiters(): Promise<number> {
  const { n } = await line.db.one<{ n: number }>(sql`
    select count(*) as n from pg_locks join pg_stat_activity using (pid)
     where not granted and datname = current_database()`);
  return n;
}

it('a sweep of strays does not remove a task that an apply is just restoring', async () => {
  const job = await line.job({ tasks: [{ name: 'kept' }, { name: 'back' }] });
  const back = job.task('back');
  await line.db.exec(sql`update task set removed_at = ${at()}, paused = true where id = ${back}`);
  await line.db.exec(sql`insert into held (task_id, instant, reason) values (${back}, ${day(1)}, 'paused')`);
  const applying = await line.pool.connect();
  await applying.query('begin');
  await onClient(applying).exec(sql`update task set removed_at = null, paused = false where id = ${back}`);
  const sweeping = line.db.exec(sql`select retire_strays(100, ${at()})`);
  await until('the sweep waits for the apply', async () => (await waiters()) > 0 || undefined);
  await applying.query('commit');
  applying.release();
  await sweeping;
  expect(await line.db.one(sql`select paused, removed_at from task where id = ${back}`)).toEqual({
    paused: false,
    removed_at: null,
  });
});

it('a run that fails after its cancellation was requested ends as cancelled: no retry, nothing downstream', async () => {
  const job = await line.job({
    tasks: [
      { name: 'a', retry: { max_attempts: 3 } },
      { name: 'alarm', depends_failure: ['task/a'] },
    ],
  });
  await activate(line, job.task('a'), day(1));
  const runs = await claim(line, job.lane);
  expect(await cancel(line, runs[0]?.id ?? '')).toBe('cancelling');
  expect(await finish(line, runs, 'failure')).toEqual({ applied: 1, created: 0, retries: 0 });
  expect(await historyOf(line, job.task('a'))).toMatchObject([{ state: 'cancelled' }]);
});

it('a lowered threshold releases tokens that already reach it', async () => {
  const triggers = [1, 2, 3].map((n) => ({ name: `t${n}`, start: day(1), period: '1d' }));
  const depends = triggers.map(({ name }) => `trigger/${name}`);
  const job = await line.job({ triggers, tasks: [{ name: 'join', depends }] });
  for (const name of ['t1', 't2']) await fire(line, [job.trigger(name)], [day(1)]);
  expect(await countOf(line, job.task('join'), day(1))).toBe(2);
  await job.change({ tasks: [{ name: 'join', depends, threshold: 2 }] });
  await release(line);
  expect(await runsOf(line, job.task('join'))).toBe(1);
  expect(await countOf(line, job.task('join'), day(1))).toBe(0);
});

it('a run that was returned and claimed again while a sweep waited is not taken from its new worker (I4)', async () => {
  const job = await line.job({ tasks: [{ name: 'a' }, { name: 'b' }] });
  await activate(line, job.task('a'), day(1));
  await activate(line, job.task('b'), day(1));
  const runs = await claim(line, job.lane);
  line.time.advance(60_000);
  const [first, second] = runs.map((run) => run.id).toSorted((a, b) => a.localeCompare(b));
  const busy = await line.pool.connect();
  await busy.query('begin');
  await onClient(busy).exec(sql`select 1 from live where id = ${first} for update`);
  const sweeping = takeBack(line);
  await until('the sweep waits', async () => (await waiters()) > 0 || undefined);
  const healthy = newId();
  await line.db.exec(sql`
    insert into lease (worker_id, incarnation, until, beat_at)
    values (${healthy}, 1, ${new Date(line.time.now() + 30_000)}, ${at()})`);
  await line.db.exec(sql`
    update live set worker_id = ${healthy}, incarnation = 1, lease = lease + 1, claimed_at = ${at()} where id = ${second}`);
  await busy.query('commit');
  busy.release();
  await sweeping;
  const rows = await line.db.rows(
    sql`select id, worker_id from live where id = any (${[first, second]}::uuid[]) order by id`,
  );
  expect(rows).toEqual([
    { id: first, worker_id: null },
    { id: second, worker_id: healthy },
  ]);
});

it('a run of a flow’s node, which has no task, is handed out like any other', async () => {
  const [lane, id, worker] = [`none:${newId()}`, newId(), newId()];
  await line.db.exec(sql`
    insert into live (id, origin, version, attempt, priority, lane, rank, queued_at)
    values (${id}, 'node', 1, 1, 'normal', ${lane}, ${at()}, ${at()})`);
  const claimed = await line.db.rows(sql`
    select id, worker_id, lease
      from claim_runs(${[lane]}::text[], ${[worker, worker]}::uuid[], ${[1, 1]}::bigint[], ${at()}, ${at()})`);
  expect(claimed).toEqual([{ id, worker_id: worker, lease: 1 }]);
});
