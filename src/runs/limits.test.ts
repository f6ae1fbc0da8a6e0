/** Limits of a task's runs, of a pool shared by jobs, and of a job's active instants; exact under concurrency. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  activate,
  at,
  cancel,
  claim,
  type ClaimedRow,
  clear,
  finish,
  fire,
  giveBack,
  historyOf,
  makePipeline,
  onConnections,
  type Outcome,
  pauseTasks,
  type Pipeline,
  queueRetries,
  release,
  runAll,
  runsOf,
  type Stage,
  type TestJob,
} from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

let pool: string;
beforeEach(() => {
  pool = `pool ${newId()}`;
});

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const days = (count: number): string[] => Array.from({ length: count }, (_, i) => day(i + 1));
const daily = { name: 't', start: day(1), period: '1d' };
const triggered = (task: object, job: object = {}) =>
  line.job({ triggers: [daily], tasks: [{ name: 'a', depends: ['trigger/t'], ...task }], ...job });
const fireDays = (stage: Stage, job: TestJob, instants: readonly string[], how: Parameters<typeof fire>[3] = {}) =>
  fire(
    stage,
    instants.map(() => job.trigger('t')),
    instants,
    how,
  );
const sweep = (stage: Stage): Promise<{ passed: number; killed: number }> =>
  stage.db.one(sql`select passed, killed from sweep_gates(1000, ${at(stage)})`);
const setPool = (name: string, places: number) =>
  line.db.exec(sql`update gate set capacity = ${places} where name = ${name}`);
const usedOf = async (gate: string): Promise<number> =>
  (
    await line.db.one<{ used: number }>(
      sql`select used from gate where ${gate.includes(' ') ? sql`name = ${gate}` : sql`id = ${gate}`}`,
    )
  ).used;
const daysOf = (runs: readonly ClaimedRow[]): number[] =>
  runs.map((run) => run.instant.getUTCDate()).sort((a, b) => a - b);

describe('max_running', () => {
  it('max_running admits that many runs of the task at a time, the earliest first, and the next when one ends', async () => {
    const job = await triggered({ max_running: 2 });
    await fireDays(line, job, days(5), { order: 'earliest' });
    const first = await claim(line, job.lane);
    expect(daysOf(first)).toEqual([1, 2]);
    expect(await claim(line, job.lane)).toEqual([]);
    expect(await finish(line, first.slice(0, 1))).toMatchObject({ applied: 1, created: 1 });
    expect(daysOf(await claim(line, job.lane))).toEqual([3]);
    expect(await usedOf(job.task('a'))).toBe(2);
  });

  it('retries, activations and returned runs count like any other run', async () => {
    const job = await triggered({ max_running: 1, retry: { max_attempts: 2, delay: '1s' } });
    await fireDays(line, job, days(1));
    const [run] = await claim(line, job.lane);
    await activate(line, job.task('a'), day(2));
    expect(await claim(line, job.lane)).toEqual([]);
    await giveBack(line, run ? [run] : []);
    const again = await claim(line, job.lane);
    expect(again.map((r) => [r.id, r.lease])).toEqual([[run?.id, 2]]);
    await finish(line, again, 'failure');
    expect(daysOf(await claim(line, job.lane))).toEqual([2]);
    line.time.advance(1_000);
    expect(await queueRetries(line)).toBe(1);
    expect(await claim(line, job.lane)).toEqual([]);
  });

  it('cancelling a waiting or ready run keeps the count right', async () => {
    const job = await triggered({ max_running: 1 });
    await fireDays(line, job, days(3), { order: 'earliest' });
    const ids = await line.db.rows<{ id: string }>(sql`
      select id from live where task_id = ${job.task('a')} order by instant`);
    expect(await cancel(line, ids[1]?.id ?? '')).toBe('cancelled');
    expect(await cancel(line, ids[0]?.id ?? '')).toBe('cancelled');
    expect(daysOf(await runAll(line, job))).toEqual([3]);
    expect(await usedOf(job.task('a'))).toBe(0);
  });

  it('max_running can be raised, lowered and removed while runs wait, and running ones count', async () => {
    const job = await triggered({ max_running: 1 });
    await fireDays(line, job, days(6), { order: 'earliest' });
    const [one] = await claim(line, job.lane);
    const with3 = await job.change({ tasks: [{ name: 'a', depends: ['trigger/t'], max_running: 3 }] });
    await sweep(line);
    const more = await claim(line, job.lane);
    expect(daysOf(more)).toEqual([2, 3]);
    const with1 = await with3.change({ tasks: [{ name: 'a', depends: ['trigger/t'], max_running: 1 }] });
    await finish(line, more);
    expect(await claim(line, job.lane)).toEqual([]);
    await with1.change({ tasks: [{ name: 'a', depends: ['trigger/t'] }] });
    await sweep(line);
    expect(daysOf(await claim(line, job.lane))).toEqual([4, 5, 6]);
    await finish(line, one ? [one] : []);
    expect(await usedOf(job.task('a'))).toBe(0);
  });

  it('max_running of a task that is running already counts running runs and holds back queued ones', async () => {
    const job = await triggered({});
    await fireDays(line, job, days(4), { order: 'earliest' });
    const running = await claim(line, job.lane, { places: 2 });
    await job.change({ tasks: [{ name: 'a', depends: ['trigger/t'], max_running: 2 }] });
    await sweep(line);
    expect(await claim(line, job.lane)).toEqual([]);
    await finish(line, running.slice(0, 1));
    expect(daysOf(await claim(line, job.lane))).toEqual([3]);
    expect(await usedOf(job.task('a'))).toBe(2);
  });

  it('a limit that is set while a transaction creates runs keeps the counts right', async () => {
    const job = await triggered({ pool });
    await setPool(pool, 3);
    let changing: Promise<unknown> = Promise.resolve();
    await line.db.transaction(async (tx) => {
      await fireDays({ ...line, db: tx }, job, days(2), { cause: 'by hand' });
      changing = job.change({ tasks: [{ name: 'a', depends: ['trigger/t'], pool, max_running: 1 }] });
      await until('the change waits for the stage', () =>
        line.db.maybeOne(sql`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
      );
    });
    await changing;
    await sweep(line);
    while ((await runAll(line, job)).length > 0);
    expect(await runsOf(line, job.task('a'))).toBe(2);
    expect(await usedOf(pool)).toBe(0);
    expect(await usedOf(job.task('a'))).toBe(0);
  });

  it('a paused job holds no place: others in the pool continue, and it queues again later', async () => {
    const paused = await triggered({ pool });
    const other = await triggered({ pool });
    await fireDays(line, paused, days(1));
    await fireDays(line, other, days(1));
    await pauseTasks(line, paused, true);
    expect(await claim(line, paused.lane)).toEqual([]);
    const [run] = await claim(line, other.lane);
    expect(run).toBeDefined();
    await pauseTasks(line, paused, false);
    await release(line);
    expect(await claim(line, paused.lane)).toEqual([]);
    await finish(line, run ? [run] : []);
    expect(await claim(line, paused.lane)).toHaveLength(1);
    expect(await usedOf(pool)).toBe(1);
  });
});

describe('pools', () => {
  it('a pool is created with one place when a job first names it, with a warning', async () => {
    const job = await triggered({ pool });
    expect(job.applied.warnings).toEqual([
      {
        path: 'tasks[0].pool',
        message: `the pool ${pool} is new and has one place; \`millrace pool set\` gives it more`,
      },
    ]);
    const again = await triggered({ pool });
    expect(again.applied.warnings).toEqual([]);
  });

  it('a pool is shared by tasks of several jobs, the higher priority first', async () => {
    const [one, two] = [await triggered({ pool }), await triggered({ pool })];
    await setPool(pool, 2);
    await fireDays(line, one, days(2), { priority: 'normal' });
    await fireDays(line, one, [day(3)], { priority: 'normal' });
    await fireDays(line, two, days(1), { priority: 'high' });
    const first = await claim(line, [one.lane, two.lane]);
    expect(daysOf(first)).toEqual([1, 2]);
    await finish(line, first.slice(0, 1));
    expect((await claim(line, [one.lane, two.lane])).map((run) => run.task_id)).toEqual([two.task('a')]);
  });

  it('a pool and the limit of a task both apply, and neither blocks runs that only the other concerns', async () => {
    const narrow = await triggered({ pool, max_running: 1 });
    const wide = await triggered({ pool });
    await setPool(pool, 3);
    await fireDays(line, narrow, days(4), { priority: 'high', order: 'earliest' });
    await fireDays(line, wide, days(4), { order: 'earliest' });
    const runs = await claim(line, [narrow.lane, wide.lane]);
    expect(runs.filter((run) => run.task_id === narrow.task('a'))).toHaveLength(1);
    expect(runs.filter((run) => run.task_id === wide.task('a'))).toHaveLength(2);
    for (let left = runs; left.length > 0; left = await claim(line, [narrow.lane, wide.lane])) {
      await finish(line, left.slice(0, 1));
      await finish(line, left.slice(1));
    }
    expect([await runsOf(line, narrow.task('a')), await runsOf(line, wide.task('a'))]).toEqual([4, 4]);
    expect([await usedOf(pool), await usedOf(narrow.task('a'))]).toEqual([0, 0]);
  });
});

describe('max_active_instants', () => {
  const chain = (job: object) =>
    line.job({
      triggers: [daily],
      tasks: [
        { name: 'a', depends: ['trigger/t'], retry: { max_attempts: 2, delay: '1s' } },
        { name: 'b', depends: ['task/a'] },
      ],
      ...job,
    });

  it('an instant is active until it has nothing left to run, including retries; then the next begins', async () => {
    const job = await chain({ max_active_instants: 1 });
    await fireDays(line, job, days(2), { order: 'earliest' });
    await runAll(line, job, 'failure');
    expect(await claim(line, job.lane)).toEqual([]);
    line.time.advance(1_000);
    await queueRetries(line);
    expect(daysOf(await runAll(line, job))).toEqual([1]);
    const [b] = await claim(line, job.lane);
    expect([b?.task_id, b?.instant]).toEqual([job.task('b'), new Date(day(1))]);
    await finish(line, b ? [b] : []);
    expect(daysOf(await claim(line, job.lane))).toEqual([2]);
    expect(await usedOf(job.id)).toBe(1);
  });

  it('the next instant begins when the remaining work of an instant is cleared', async () => {
    const job = await chain({ max_active_instants: 1 });
    await fireDays(line, job, days(2), { order: 'earliest' });
    await runAll(line, job, 'failure');
    await clear(line, job.id, day(1));
    expect(daysOf(await claim(line, job.lane))).toEqual([2]);
  });

  it('overlap skip cancels an instant that comes too early, with the reason', async () => {
    const job = await chain({ max_active_instants: 1, overlap: 'skip' });
    await fireDays(line, job, [day(1)]);
    await fireDays(line, job, [day(2)]);
    expect(await historyOf(line, job.task('a'))).toMatchObject([
      { state: 'cancelled', reason: 'gave way to another instant of its job (overlap)' },
    ]);
    expect(daysOf(await runAll(line, job))).toEqual([1]);
    await runAll(line, job);
    await fireDays(line, job, [day(3)]);
    expect(daysOf(await claim(line, job.lane))).toEqual([3]);
  });

  it('overlap skip still queues catch-ups and backfills', async () => {
    const job = await chain({ max_active_instants: 1, overlap: 'skip' });
    await fireDays(line, job, days(3), { priority: 'backfill', order: 'earliest' });
    for (const n of [1, 2, 3]) {
      expect(daysOf(await runAll(line, job))).toEqual([n]);
      await runAll(line, job);
    }
  });

  it('overlap cancel_older kills running runs, cancels waiting ones, and runs only the newest', async () => {
    const job = await chain({ max_active_instants: 1, overlap: 'cancel_older' });
    await fireDays(line, job, [day(1)]);
    const [old] = await claim(line, job.lane);
    const killed = async (): Promise<number> =>
      (
        await line.db.one<{ n: number }>(
          sql`select count(*) as n from live where cancel and task_id = ${job.task('a')}`,
        )
      ).n;
    await fireDays(line, job, [day(2)]);
    expect(await killed()).toBe(1);
    line.time.advance(1_000);
    await fireDays(line, job, [day(3)]);
    expect(await claim(line, job.lane)).toEqual([]);
    await finish(line, old ? [old] : [], 'failure');
    expect(daysOf(await claim(line, job.lane))).toEqual([3]);
    const over = { state: 'cancelled', reason: 'gave way to another instant of its job (overlap)' };
    expect(await historyOf(line, job.task('a'))).toMatchObject([over, over]);
    expect(await usedOf(job.id)).toBe(1);
  });

  it('removing max_active_instants admits everything; setting it again counts running instants', async () => {
    const job = await chain({ max_active_instants: 1 });
    await fireDays(line, job, days(3), { order: 'earliest' });
    const open = await job.change({ max_active_instants: null });
    await sweep(line);
    const runs = await claim(line, job.lane, { places: 2 });
    expect(runs).toHaveLength(2);
    expect(await usedOf(job.id)).toBe(0);
    await open.change({ max_active_instants: 2 });
    await sweep(line);
    expect(await claim(line, job.lane)).toEqual([]);
    expect(await usedOf(job.id)).toBe(2);
    await finish(line, runs);
  });
});

describe('concurrency', () => {
  it('no limit is ever exceeded, no run is left waiting, and the counts end at zero', async () => {
    const shared = { pool, max_running: 3 };
    const jobs: TestJob[] = [];
    for (let n = 0; n < 3; n++) {
      jobs.push(
        await line.job({
          triggers: [daily],
          max_active_instants: n === 2 ? 4 : null,
          tasks: [
            { name: 'a', depends: ['trigger/t'], ...shared, retry: { max_attempts: 2, delay: '1s' } },
            { name: 'b', depends_done: ['task/a'], pool },
            { name: 'c', depends: ['task/b'] },
          ],
        }),
      );
    }
    await setPool(pool, 5);
    const lanes = jobs.map((job) => job.lane);
    const instants = days(60);
    let fired = 0;
    const firing = async (stage: Stage): Promise<void> => {
      while (fired < instants.length) {
        const some = instants.slice(fired, (fired += 5));
        for (const job of jobs) await fireDays(stage, job, some);
      }
    };
    const excess: unknown[] = [];
    const working = async (stage: Stage): Promise<void> => {
      for (let idle = 0; idle < 20; ) {
        const runs = await claim(stage, lanes, { places: 7 });
        idle = runs.length === 0 ? idle + 1 : 0;
        excess.push(...(await exceeded(stage, jobs, pool)));
        const states = runs.map((): Outcome => (Math.random() < 0.2 ? 'failure' : 'success'));
        if (Math.random() < 0.1) await giveBack(stage, runs);
        else if (runs.length > 0) await finish(stage, runs, states);
        line.time.advance(100);
        await queueRetries(stage);
        if (runs.length === 0) await sweep(stage);
      }
    };
    await onConnections(line, [firing, working, working, working, working]);
    expect(excess).toEqual([]);
    const waiting = await line.db.rows(sql`select gate, instant from live where lane = any (${lanes}::text[])`);
    expect(waiting).toEqual([]);
    for (const job of jobs) {
      expect(await usedOf(job.task('a'))).toBe(0);
      expect((await historyOf(line, job.task('b'))).length).toBe(60);
    }
    expect([await usedOf(pool), await usedOf(jobs[2]?.id ?? '')]).toEqual([0, 0]);
    expect(await line.db.rows(sql`select 1 from active_instant where job_id = ${jobs[2]?.id ?? ''}`)).toEqual([]);
  }, 60_000);
});

/** Limits that are exceeded at this moment. */
function exceeded(stage: Stage, jobs: readonly TestJob[], pool: string): Promise<unknown[]> {
  const tasks = jobs.map((job) => job.task('a'));
  return stage.db.rows(sql`
    select 'task' as what, task_id::text as which, count(*) as n
      from live where worker_id is not null and task_id = any (${tasks}::uuid[]) group by task_id having count(*) > 3
    union all
    select 'pool', ${pool}, count(*)
      from live join task k on k.id = live.task_id
     where worker_id is not null and k.gates && array(select id from gate where name = ${pool}) having count(*) > 5
    union all
    select 'instants', k.job_id::text, count(distinct instant)
      from live join task k on k.id = live.task_id
     where worker_id is not null and k.job_id = ${jobs[2]?.id} group by 2 having count(distinct instant) > 4`);
}
