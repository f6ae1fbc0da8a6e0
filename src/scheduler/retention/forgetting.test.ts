/** Data that retention deletes with runs: tokens, firings, stashes, parameters. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeContext } from '../../../test/harness/engine-context.ts';
import {
  activate,
  at,
  claim,
  clear,
  countOf,
  fire,
  historyOf,
  makePipeline,
  onConnections,
  pauseTasks,
  type Pipeline,
  queueRetries,
  release,
  runAll,
  type TestJob,
} from '../../../test/harness/pipeline.ts';
import { until } from '../../../test/harness/until.ts';
import type { Retention } from '../../contract/context.ts';
import { sql } from '../../kernel/sql.ts';
import { pruneTenant } from './prune.ts';
import { fireTriggers } from '../queries.ts';

const day = 86_400_000;
const thirtyDays: Retention = { ageMs: 30 * day, runs: null, events: null };
const instant = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const prune = (retention: Retention = thirtyDays): Promise<number> => pruneTenant(makeContext({ ...line, retention }));

/** Starts and finishes a run of the job's only task at the instant. */
async function finishRun(job: TestJob, when: string, outcome: 'success' | 'failure' = 'success'): Promise<string> {
  const [id = ''] = await activate(line, job.task('only'), when);
  await runAll(line, job, outcome);
  return id;
}

async function count(table: 'firing' | 'job_stash' | 'instant_params', of: string): Promise<number> {
  const where = {
    firing: sql`firing where trigger_id = ${of}`,
    job_stash: sql`job_stash where job_id = ${of}`,
    instant_params: sql`instant_params where job_id = ${of}`,
  }[table];
  return (await line.db.one<{ n: number }>(sql`select count(*)::integer as n from ${where}`)).n;
}

describe('a token', () => {
  it('a token with a count, or one that is held, is never deleted', async () => {
    const job = await line.job({
      tasks: [{ name: 'only' }, { name: 'joined', depends: ['task/only'], threshold: 2 }, { name: 'full' }],
    });
    await finishRun(job, instant(1));
    await pauseTasks(line, job, true);
    await line.db.exec(sql`
      select count_tokens(array[${job.task('full')}]::uuid[], array[${instant(1)}]::timestamptz[], array[1],
                          array['normal']::priority[], array[null]::uuid[], null, ${at(line)})`);
    line.time.advance(400 * day);
    await prune();
    expect(await countOf(line, job.task('only'), instant(1))).toBeUndefined();
    expect(await countOf(line, job.task('joined'), instant(1))).toBe(1);
    expect(await countOf(line, job.task('full'), instant(1))).toBe(1);
    await pauseTasks(line, job, false);
    expect(await release(line)).toBe(1);
  });

  it('a token with a surplus count stays when its runs are deleted', async () => {
    const job = await line.job({ tasks: [{ name: 'only' }, { name: 'joined', depends: ['task/only'], threshold: 2 }] });
    for (let n = 0; n < 3; n++) await finishRun(job, instant(1));
    await runAll(line, job);
    expect((await historyOf(line, job.task('joined'))).length).toBe(1);
    line.time.advance(31 * day);
    await prune();
    expect((await historyOf(line, job.task('joined'))).length).toBe(0);
    expect(await countOf(line, job.task('joined'), instant(1))).toBe(1);
    await finishRun(job, instant(1));
    expect((await runAll(line, job)).map((run) => run.task_id)).toEqual([job.task('joined')]);
  });

  it('a token whose run is queued, running or to be retried stays', async () => {
    const job = await line.job({ tasks: [{ name: 'only', retry: { max_attempts: 2, delay: '500d' } }] });
    const task = job.task('only');
    await finishRun(job, instant(1), 'failure');
    await finishRun(job, instant(2));
    await activate(line, task, instant(2));
    await claim(line, job.lane);
    await finishRun(job, instant(3));
    await activate(line, task, instant(3));
    line.time.advance(400 * day);
    await prune();
    expect(await countOf(line, task, instant(1))).toBe(0);
    expect(await countOf(line, task, instant(2))).toBe(0);
    expect(await countOf(line, task, instant(3))).toBe(0);
    // the run with a pending retry stays, so that it can be cancelled; the others are too old
    expect((await historyOf(line, task)).map((run) => run.state)).toEqual(['failure']);
    line.time.advance(200 * day);
    expect(await queueRetries(line)).toBe(1);
  });

  it.each([
    ['held', sql`insert into held (task_id, instant, reason)`, sql`'paused'`],
    [
      'retry',
      sql`insert into retry (task_id, instant, run_id, attempt, priority, due_at)`,
      sql`new_id(), 2, 'low', now()`,
    ],
    [
      'live',
      sql`insert into live (task_id, instant, id, version, attempt, priority, lane, rank, queued_at)`,
      sql`new_id(), 1, 1, 'low', 'nowhere', now(), now()`,
    ],
  ] as const)('a token is not idle while the table %s has a row for it', async (_, insert, rest) => {
    const job = await line.job();
    await finishRun(job, instant(1));
    await line.db.exec(sql`delete from run where task_id = ${job.task('only')}`);
    await line.db.exec(sql`${insert} values (${job.task('only')}, ${instant(1)}, ${rest})`);
    const forget = sql`
      select tokens from forget_tokens(array[${job.task('only')}]::uuid[], array[${instant(1)}]::timestamptz[])`;
    expect(await line.db.rows(forget)).toEqual([{ tokens: 0 }]);
    for (const table of [sql`held`, sql`retry`, sql`live`])
      await line.db.exec(sql`delete from ${table} where task_id = ${job.task('only')}`);
    expect(await line.db.rows(forget)).toEqual([{ tokens: 1 }]);
  });

  it('a token that is counted and deleted concurrently loses no count, in either order', async () => {
    const job = await line.job({ tasks: [{ name: 'only' }, { name: 'joined', depends: ['task/only'], threshold: 2 }] });
    const joined = job.task('joined');
    const countUp = sql`
      select count_tokens(array[${joined}]::uuid[], array[${instant(1)}]::timestamptz[], array[1],
                          array['normal']::priority[], array[null]::uuid[], null, ${at(line)})`;
    const forget = sql`select tokens from forget_tokens(array[${joined}]::uuid[], array[${instant(1)}]::timestamptz[])`;
    await line.db.exec(sql`
      insert into token (task_id, instant, count, fire, reach, priority)
      values (${joined}, ${instant(1)}, 0, 0, 2, 'normal')`);
    // counted but not committed: the token is in use
    await line.db.transaction(async (tx) => {
      await tx.exec(countUp);
      expect(await line.db.rows(forget)).toEqual([{ tokens: 0 }]);
    });
    expect(await countOf(line, joined, instant(1))).toBe(1);
    await clear(line, job.id, instant(1));
    // deleted but not committed: the count waits, and creates the token again
    let counted: Promise<number> | undefined;
    await line.db.transaction(async (tx) => {
      expect(await tx.rows(forget)).toEqual([{ tokens: 1 }]);
      counted = line.db.exec(countUp);
      await until(
        'the count waits for the token',
        async () =>
          (await line.db.maybeOne(sql`
          select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%count_tokens%'`)) && true,
      );
    });
    await counted;
    expect(await countOf(line, joined, instant(1))).toBe(1);
  });

  it('a token that was cleared before it ever ran is deleted when both the clearing and the instant are old', async () => {
    const job = await line.job({ tasks: [{ name: 'only' }, { name: 'joined', depends: ['task/only'], threshold: 2 }] });
    const times = new Date(line.time.now()).toISOString();
    await finishRun(job, times);
    line.time.advance(20 * day);
    await clear(line, job.id, times);
    line.time.advance(20 * day);
    await prune();
    expect(await countOf(line, job.task('joined'), times)).toBe(0);
    line.time.advance(20 * day);
    await prune();
    expect(await countOf(line, job.task('joined'), times)).toBeUndefined();
  });
});

describe('a firing', () => {
  const triggered = (): Promise<TestJob> =>
    line.job({
      triggers: [{ name: 't', start: instant(1), period: '1d' }],
      tasks: [{ name: 'only', depends: ['trigger/t'] }],
    });
  const fireAgain = (job: TestJob, when: string) =>
    fireTriggers(line.db, [{ triggerId: job.trigger('t'), instantMs: Date.parse(when) }], {
      priority: 'backfill',
      at: at(line),
    });

  it('a firing is deleted with its token, and its instant never fires again (I1)', async () => {
    const job = await triggered();
    await fire(line, Array(4).fill(job.trigger('t')), [1, 2, 3, 4].map(instant));
    await runAll(line, job);
    line.time.advance(31 * day);
    await prune();
    // the firing of the latest instant stays; everything before it is settled
    expect(await count('firing', job.trigger('t'))).toBe(1);
    for (const n of [1, 2, 3, 4]) expect(await fireAgain(job, instant(n))).toMatchObject({ fired: 0, created: 0 });
    expect(await fireAgain(job, instant(5))).toMatchObject({ fired: 1, created: 1 });
  });

  it('a firing stays while earlier instants wait for catch-up, and those can fire', async () => {
    const job = await triggered();
    await fire(line, Array(3).fill(job.trigger('t')), [1, 5, 6].map(instant));
    await line.db.exec(sql`
      insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed)
      values (${job.trigger('t')}, ${instant(2)}, ${instant(5)}, 'earliest', 1, 0)`);
    await runAll(line, job);
    line.time.advance(31 * day);
    await prune();
    expect(await count('firing', job.trigger('t'))).toBe(2);
    expect(await fireAgain(job, instant(5))).toMatchObject({ fired: 0 });
    expect(await fireAgain(job, instant(3))).toMatchObject({ fired: 1, created: 1 });
  });

  it('after the start was moved back, instants before the first one fire although the mark is above them', async () => {
    const job = await triggered();
    await fire(line, Array(3).fill(job.trigger('t')), [11, 12, 13].map(instant));
    await runAll(line, job);
    line.time.advance(31 * day);
    await prune();
    expect(await fireAgain(job, instant(12))).toMatchObject({ fired: 0 });
    expect(await fireAgain(job, instant(2))).toMatchObject({ fired: 1, created: 1 });
  });

  it('two schedulers fire nothing twice while old firings are deleted', async () => {
    const job = await triggered();
    const days = Array.from({ length: 40 }, (_, n) => instant(n + 1));
    await fire(
      line,
      days.map(() => job.trigger('t')),
      days,
    );
    const made = (await runAll(line, job)).length;
    line.time.advance(400 * day);
    const again = async (stage: Pick<Pipeline, 'db'>): Promise<number> => {
      let created = 0;
      for (const when of days) {
        const firing = [{ triggerId: job.trigger('t'), instantMs: Date.parse(when) }];
        created += (await fireTriggers(stage.db, firing, { priority: 'backfill', at: at(line) })).created;
      }
      return created;
    };
    const pruned = async (): Promise<number> => {
      await prune();
      return 0;
    };
    expect(made).toBe(40);
    expect(await onConnections(line, [again, again, pruned])).toEqual([0, 0, 0]);
  });

  it('the low-water mark is not raised while a transaction fires', async () => {
    const job = await triggered();
    await fire(line, Array(2).fill(job.trigger('t')), [1, 2].map(instant));
    const raise = sql`select raise_low_water(array[${job.trigger('t')}]::uuid[]) as raised`;
    await line.db.transaction(async (tx) => {
      const firing = [{ triggerId: job.trigger('t'), instantMs: Date.parse(instant(3)) }];
      await fireTriggers(tx, firing, { priority: 'normal', at: at(line) });
      expect(await line.db.rows(raise)).toEqual([{ raised: false }]);
    });
    expect(await line.db.rows(raise)).toEqual([{ raised: true }]);
  });

  it('a firing of an open backfill stays', async () => {
    const job = await triggered();
    const backfill = await line.db.one<{ id: string }>(sql`
      insert into backfill (id, job_id, first_at, last_at, policy, priority, only_missing, seed, actor, created_at)
      values (new_id(), ${job.id}, ${instant(1)}, ${instant(2)}, 'earliest', 'backfill', false, 0, 'test', ${at(line)})
      returning id`);
    await fire(line, job.trigger('t'), instant(1), { cause: backfill.id });
    await runAll(line, job);
    line.time.advance(31 * day);
    await prune();
    expect(await count('firing', job.trigger('t'))).toBe(1);
    await line.db.exec(sql`update backfill set ended_at = ${at(line)} where id = ${backfill.id}`);
    await prune();
    expect(await count('firing', job.trigger('t'))).toBe(0);
  });

  it('the walk finds firings whose edge was removed', async () => {
    const job = await triggered();
    await fire(line, Array(3).fill(job.trigger('t')), [1, 2, 3].map(instant));
    await job.change({ triggers: [], tasks: [{ name: 'only' }] });
    line.time.advance(31 * day);
    await prune();
    expect(await count('firing', job.trigger('t'))).toBe(1);
  });
});

describe('stash values and parameters of an instant', () => {
  it('stash values and parameters are deleted with the last token of their instant', async () => {
    const job = await line.job({ tasks: [{ name: 'only' }, { name: 'next', depends: ['task/only'] }] });
    await line.db.exec(sql`
      insert into job_stash (job_id, instant, name, data) values (${job.id}, ${instant(1)}, 'x', 'y')`);
    await line.db.exec(sql`
      insert into instant_params (job_id, instant, params) values (${job.id}, ${instant(1)}, '{}')`);
    await finishRun(job, instant(1));
    line.time.advance(31 * day);
    await prune();
    // the other task has not run yet
    expect([await count('job_stash', job.id), await count('instant_params', job.id)]).toEqual([1, 1]);
    await runAll(line, job);
    line.time.advance(31 * day);
    await prune();
    expect([await count('job_stash', job.id), await count('instant_params', job.id)]).toEqual([0, 0]);
  });

  it('parameters stay while a transaction starts something in the job', async () => {
    const job = await line.job();
    await line.db.exec(sql`
      insert into instant_params (job_id, instant, params) values (${job.id}, ${instant(1)}, '{}')`);
    line.time.advance(31 * day);
    await line.db.transaction(async (tx) => {
      await tx.exec(sql`select 1 from job where id = ${job.id} for share`);
      await prune();
    });
    expect(await count('instant_params', job.id)).toBe(1);
    await prune();
    expect(await count('instant_params', job.id)).toBe(0);
  });
});
