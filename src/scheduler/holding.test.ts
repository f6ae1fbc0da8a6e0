/** Paused jobs, cleared and activated tokens, cancelled runs, and removed tasks and jobs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  activate,
  at,
  cancel,
  claim,
  clear,
  countOf,
  finish,
  fire,
  historyOf,
  makePipeline,
  onConnections,
  pauseTasks,
  type Pipeline,
  queueRetries,
  release,
  runAll,
  runsOf,
} from '../../test/harness/pipeline.ts';
import { isSerialization } from '../errors.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const days = (count: number): string[] => Array.from({ length: count }, (_, i) => day(i + 1));
const daily = { name: 't', start: day(1), period: '1d' };
const triggered = (threshold = 1, more: object = {}) =>
  line.job({ triggers: [daily], tasks: [{ name: 'a', depends: ['trigger/t'], threshold, ...more }] });
const heldOf = (task: string) => line.db.rows(sql`select instant, reason from held where task_id = ${task}`);

describe('paused task', () => {
  it('a paused task collects tokens without running, and records which are held', async () => {
    const job = await triggered(2);
    await pauseTasks(line, job, true);
    await fire(line, job.trigger('t'), day(1), { cause: '1' });
    expect(await heldOf(job.task('a'))).toEqual([]);
    await fire(line, job.trigger('t'), day(1), { cause: '2' });
    expect(await heldOf(job.task('a'))).toEqual([{ instant: new Date(day(1)), reason: 'paused' }]);
    expect(await runsOf(line, job.task('a'))).toBe(0);
    expect(await release(line)).toBe(0);
    expect(await countOf(line, job.task('a'), day(1))).toBe(2);
  });

  it('a released task runs once per multiple of its threshold, at the priority of the tokens', async () => {
    const job = await triggered(2);
    await pauseTasks(line, job, true);
    for (const cause of ['1', '2', '3', '4', '5'])
      await fire(line, job.trigger('t'), day(1), { cause, priority: 'backfill' });
    await pauseTasks(line, job, false);
    expect(await release(line)).toBe(2);
    expect(await release(line)).toBe(0);
    expect(await countOf(line, job.task('a'), day(1))).toBe(1);
    expect((await claim(line, job.lane)).map((run) => run.priority)).toEqual(['backfill', 'backfill']);
    expect(await heldOf(job.task('a'))).toEqual([]);
  });

  it('held tokens are released completely and once, in batches, by two concurrent releases', async () => {
    const job = await triggered();
    await pauseTasks(line, job, true);
    await fire(
      line,
      days(60).map(() => job.trigger('t')),
      days(60),
    );
    await pauseTasks(line, job, false);
    let released = 0;
    for (let round = 0; round < 10; round++) {
      const both = await Promise.all([release(line, 10), release(line, 10)]);
      released += both[0] + both[1];
    }
    expect(released).toBe(60);
    expect(await runsOf(line, job.task('a'))).toBe(60);
  });

  it('a task that gets its last token after its release runs with that token', async () => {
    const job = await triggered(2);
    await pauseTasks(line, job, true);
    await fire(line, job.trigger('t'), day(1), { cause: '1' });
    await pauseTasks(line, job, false);
    expect(await release(line)).toBe(0);
    expect(await fire(line, job.trigger('t'), day(1), { cause: '2' })).toMatchObject({ created: 1 });
  });

  it('retries and activations of a paused task stay parked until its release', async () => {
    const job = await triggered(1, { retry: { max_attempts: 2, delay: '1s' } });
    await fire(line, job.trigger('t'), day(1));
    const runs = await claim(line, job.lane);
    await pauseTasks(line, job, true);
    await finish(line, runs, 'failure');
    line.time.advance(1_000);
    expect(await queueRetries(line)).toBe(1);
    await activate(line, job.task('a'), day(2));
    expect(await claim(line, job.lane)).toEqual([]);
    await pauseTasks(line, job, false);
    expect(await release(line)).toBe(2);
    expect((await claim(line, job.lane)).map((run) => run.attempt).toSorted((a, b) => a - b)).toEqual([1, 2]);
  });

  it('releasing, activating and clearing concurrently do not deadlock', async () => {
    for (let round = 0; round < 15; round++) {
      const job = await triggered();
      const instants = days(20);
      await pauseTasks(line, job, true);
      await fire(
        line,
        instants.map(() => job.trigger('t')),
        instants,
      );
      await pauseTasks(line, job, false);
      const deadlock = await onConnections<unknown>(line, [
        (one) => release(one),
        (two) =>
          activate(
            two,
            instants.map(() => job.task('a')),
            instants,
          ),
        (three) => clear(three, job.id, day(20)),
      ]).then(() => undefined, isSerialization);
      expect(deadlock).toBeUndefined();
      await runAll(line, job);
    }
  });
});

describe('lowered threshold', () => {
  it('a token that a concurrent stage counted by the old threshold runs', async () => {
    const job = await triggered(3);
    await fire(line, job.trigger('t'), day(1), { cause: 'first' });
    await line.db.transaction(async (tx) => {
      await fire({ ...line, db: tx }, job.trigger('t'), day(1), { cause: 'second' });
      await job.change({ tasks: [{ name: 'a', depends: ['trigger/t'], threshold: 2 }] });
    });
    expect(await countOf(line, job.task('a'), day(1))).toBe(2);
    await line.db.exec(sql`select sweep_lowered(${at(line)})`);
    await release(line);
    await runAll(line, job);
    expect(await runsOf(line, job.task('a'))).toBe(1);
  });
});

describe('activation', () => {
  it('an activated task runs at once, and a partial count starts again from zero', async () => {
    const job = await triggered(3);
    await fire(line, job.trigger('t'), day(1), { cause: '1' });
    await fire(line, job.trigger('t'), day(1), { cause: '2' });
    expect(await activate(line, job.task('a'), day(1))).toHaveLength(1);
    expect(await countOf(line, job.task('a'), day(1))).toBe(0);
    expect(await fire(line, job.trigger('t'), day(1), { cause: '3' })).toMatchObject({ created: 0 });
    expect(await countOf(line, job.task('a'), day(1))).toBe(1);
  });

  it('two concurrent activations make two runs', async () => {
    const job = await triggered();
    const runs = await Promise.all([1, 2].map(() => activate(line, job.task('a'), day(1))));
    expect(new Set(runs.flat()).size).toBe(2);
  });

  it('an activation that names a token twice makes one run', async () => {
    const job = await triggered();
    await expect(activate(line, [job.task('a'), job.task('a')], [day(1), day(1)])).resolves.toHaveLength(1);
  });

  it('an activated token is no longer held', async () => {
    const job = await triggered();
    await pauseTasks(line, job, true);
    await fire(line, job.trigger('t'), day(1));
    await activate(line, job.task('a'), day(1));
    expect(await heldOf(job.task('a'))).toEqual([]);
    await pauseTasks(line, job, false);
    expect(await release(line)).toBe(1);
    expect(await runsOf(line, job.task('a'))).toBe(1);
  });
});

describe('clear', () => {
  it('clearing an instant removes its counts, held tokens and retries, and keeps its runs', async () => {
    const job = await triggered(2, { retry: { max_attempts: 2, delay: '1h' } });
    for (const cause of ['1', '2']) await fire(line, job.trigger('t'), day(1), { cause });
    await runAll(line, job, 'failure');
    await fire(line, job.trigger('t'), day(1), { cause: '3' });
    await fire(line, job.trigger('t'), day(2), { cause: '3' });
    expect(await clear(line, job.id, day(1))).toBe(1);
    expect(await countOf(line, job.task('a'), day(1))).toBe(0);
    expect(await countOf(line, job.task('a'), day(2))).toBe(1);
    line.time.advance(3_600_000);
    expect(await queueRetries(line)).toBe(0);
    expect(await historyOf(line, job.task('a'))).toHaveLength(1);
  });
});

describe('cancel', () => {
  it('a queued run is cancelled at once, and makes no tokens downstream', async () => {
    const job = await line.job({ tasks: [{ name: 'a' }, { name: 'b', depends_done: ['task/a'] }] });
    const [run = ''] = await activate(line, job.task('a'), day(1));
    expect(await cancel(line, run)).toBe('cancelled');
    expect(await claim(line, job.lane)).toEqual([]);
    expect(await historyOf(line, job.task('a'))).toMatchObject([
      { id: run, state: 'cancelled', reason: 'cancelled by test' },
    ]);
    expect(await runsOf(line, job.task('b'))).toBe(0);
    expect(await cancel(line, run)).toBe('finished');
  });

  it('a running run is marked, and ends when its worker reports', async () => {
    const job = await line.job({ tasks: [{ name: 'a' }, { name: 'b', depends_done: ['task/a'] }] });
    await activate(line, job.task('a'), day(1));
    const runs = await claim(line, job.lane);
    expect(await cancel(line, runs[0]?.id ?? '')).toBe('cancelling');
    expect(await finish(line, runs, 'cancelled')).toEqual({ applied: 1, created: 0, retries: 0 });
    expect(await historyOf(line, job.task('a'))).toMatchObject([{ state: 'cancelled', reason: 'cancelled by test' }]);
  });

  it('cancelling drops a pending retry', async () => {
    const job = await line.job({ tasks: [{ name: 'a', retry: { max_attempts: 2, delay: '1s' } }] });
    await activate(line, job.task('a'), day(1));
    const [run] = await runAll(line, job, 'failure');
    expect(await cancel(line, run?.id ?? '')).toBe('cancelled');
    line.time.advance(1_000);
    expect(await queueRetries(line)).toBe(0);
    expect(await cancel(line, run?.id ?? '')).toBe('finished');
  });
});

describe('removed task', () => {
  const two = {
    tasks: [{ name: 'a' }, { name: 'gone', depends: ['task/a'], retry: { max_attempts: 2, delay: '1s' } }],
  };

  it('a removed task no longer runs, neither by its parents, nor by retries, nor from the queue', async () => {
    const job = await line.job(two);
    await activate(line, [job.task('gone'), job.task('a'), job.task('gone')], [day(1), day(2), day(3)]);
    const [first, ...rest] = (await claim(line, job.lane, { places: 1 })).concat(
      await claim(line, job.lane, { places: 1 }),
    );
    const failing = [first, ...rest].filter((run) => run !== undefined && run.task_id === job.task('gone'));
    await finish(
      line,
      failing.flatMap((run) => run ?? []),
      'failure',
    );
    await job.change({ tasks: [{ name: 'a' }] });
    line.time.advance(1_000);
    expect(await queueRetries(line)).toBe(0);
    await runAll(line, job);
    await runAll(line, job);
    const running = await line.db.rows(sql`
      select id from live where task_id = ${job.task('gone')} and worker_id is not null`);
    expect(running).toEqual([]);
    expect(await line.db.rows(sql`select * from live where task_id = ${job.task('gone')} and not parked`)).toEqual([]);
  });

  it('queued runs of a removed task are cancelled; running ones may finish, without tokens downstream', async () => {
    const job = await line.job({ tasks: [...two.tasks, { name: 'after', depends: ['task/gone'] }] });
    await activate(line, job.task('gone'), day(1));
    const running = await claim(line, job.lane);
    await activate(line, job.task('gone'), day(2));
    await job.change({ tasks: [{ name: 'a' }, { name: 'after' }] });
    expect(await historyOf(line, job.task('gone'))).toMatchObject([{ state: 'cancelled' }]);
    expect(await finish(line, running)).toEqual({ applied: 1, created: 0, retries: 0 });
  });

  it('a run that a concurrent stage has queued for a removed task is cancelled', async () => {
    const job = await line.job(two);
    await job.change({ tasks: [{ name: 'a' }] });
    await line.db.exec(sql`
      insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
      values (${newId()}, ${job.task('gone')}, ${day(1)}, 1, 1, 'normal', ${job.lane}, ${at(line)}, ${at(line)})`);
    expect(await claim(line, job.lane)).toEqual([]);
    await line.db.exec(sql`select retire_strays(100, ${at(line)})`);
    expect(await historyOf(line, job.task('gone'))).toMatchObject([{ state: 'cancelled', reason: 'task removed' }]);
  });

  it('a run of a removed task that waits at a limit is cancelled as well', async () => {
    const limited = { name: 'gone', max_running: 1 };
    const job = await line.job({ tasks: [{ name: 'a' }, limited] });
    await job.change({ tasks: [{ name: 'a' }] });
    const [id, gone] = [newId(), job.task('gone')];
    await line.db.exec(sql`
      insert into live (id, task_id, instant, version, attempt, priority, lane, rank, gate, queued_at)
      values (${id}, ${gone}, ${day(1)}, 1, 1, 'normal', ${job.lane}, ${at(line)}, ${gone}, ${at(line)})`);
    await line.db.exec(sql`select retire_strays(100, ${at(line)})`);
    expect(await historyOf(line, gone)).toMatchObject([{ id, state: 'cancelled', reason: 'task removed' }]);
  });

  it('a removed task runs again when a later version names it', async () => {
    const job = await line.job(two);
    await job.change({ tasks: [{ name: 'a' }] });
    const revived = await job.change(two);
    expect(revived.task('gone')).toBe(job.task('gone'));
    await activate(line, job.task('a'), day(1));
    await runAll(line, job);
    expect(await runsOf(line, job.task('gone'))).toBe(1);
  });
});

describe('deleted job', () => {
  it('a deleted job has nothing left to run, and keeps its history', async () => {
    const job = await triggered(1, { retry: { max_attempts: 2, delay: '1s' } });
    await fire(
      line,
      days(4).map(() => job.trigger('t')),
      days(4),
    );
    const [failing, running] = await claim(line, job.lane, { places: 2 });
    await finish(line, failing ? [failing] : [], 'failure');
    const killed = await line.db.rows<{ id: string }>(sql`
      select id from delete_jobs(${[job.id]}::uuid[], 'test', ${at(line)})`);
    expect(killed.map((run) => run.id)).toEqual([running?.id]);
    line.time.advance(1_000);
    expect(await queueRetries(line)).toBe(0);
    expect(await claim(line, job.lane)).toEqual([]);
    expect(await fire(line, job.trigger('t'), day(9))).toMatchObject({ created: 0 });
    expect((await historyOf(line, job.task('a'))).map((run) => run.state).toSorted()).toEqual([
      'cancelled',
      'cancelled',
      'failure',
    ]);
  });
});

describe('token counts', () => {
  it('token counts are exact and never negative after any mixture of concurrent stages', async () => {
    const job = await line.job({
      triggers: [daily],
      tasks: [
        { name: 'a', depends: ['trigger/t'], retry: { max_attempts: 2, delay: '1ms' } },
        { name: 'b', depends_done: ['task/a'] },
        { name: 'c', depends: ['task/a', 'task/b'] },
      ],
    });
    const instants = days(12);
    for (let round = 0; round < 12; round++) {
      const cause = `round ${round}`;
      await Promise.all([
        fire(
          line,
          instants.map(() => job.trigger('t')),
          instants,
          { cause },
        ),
        runAll(line, job, round % 3 === 0 ? 'failure' : 'success'),
        runAll(line, job, round % 4 === 0 ? 'timeout' : 'success'),
        round % 5 === 0 ? pauseTasks(line, job, true) : pauseTasks(line, job, false),
        release(line),
        queueRetries(line),
      ]);
      line.time.advance(10);
    }
    await pauseTasks(line, job, false);
    for (let i = 0; i < 20; i++) {
      line.time.advance(10);
      await release(line);
      await queueRetries(line);
      await runAll(line, job);
    }
    // every firing made one token of a, so one chain of attempts that ended once, so one token of b
    const ended = await line.db.one(sql`
      select (select count(*) from run where task_id = ${job.task('a')} and attempt = 1) as first_attempts,
             (select count(*) from run where task_id = ${job.task('b')} and attempt = 1) as of_b,
             (select count(*) from token where count < 0) as negative,
             (select coalesce(sum(count), 0) from token where task_id in (${job.task('a')}, ${job.task('b')})) as left_over`);
    expect(ended).toEqual({ first_attempts: 12 * 12, of_b: 12 * 12, negative: 0, left_over: 0 });
  });
});
