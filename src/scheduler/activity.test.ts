/** The activity of each minute is counted in the commits that cause it, and agrees with the runs themselves. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import {
  activate,
  at,
  cancel,
  claim,
  finish,
  fire,
  makePipeline,
  onConnections,
  type Pipeline,
  queueRetries,
  runAll,
  takeBack,
} from '../../test/harness/pipeline.ts';
import { after, day, minute, Schedule } from '../../test/harness/scheduling.ts';
import { until } from '../../test/harness/until.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { pruneTenant } from './retention/prune.ts';
import { fireTriggers } from './queries.ts';
import { triggersFired } from './telemetry.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

const instant = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const daily = { name: 't', start: instant(1), period: '1d' };

const ends = sql`
  count(*) filter (where state = 'success')::integer as success,
  count(*) filter (where state = 'failure')::integer as failure,
  count(*) filter (where state = 'timeout')::integer as timeout,
  count(*) filter (where state = 'error')::integer as error,
  count(*) filter (where state = 'cancelled')::integer as cancelled,
  count(started_at)::integer as started,
  coalesce(extract(epoch from sum(started_at - queued_at)), 0)::float8 as wait,
  coalesce(extract(epoch from max(started_at - queued_at)), 0)::float8 as worst_wait`;

/** Activity per minute: computed from the runs, and as it was counted. */
const fromRuns = (db: Db) =>
  db.rows(sql`select date_trunc('minute', finished_at) as at, ${ends} from run group by 1 order by 1`);
const counted = (db: Db) =>
  db.rows(sql`
    select at, success, failure, timeout, error, cancelled, started,
           extract(epoch from wait)::float8 as wait, extract(epoch from worst_wait)::float8 as worst_wait
      from activity
     where success + failure + timeout + error + cancelled > 0
     order by at`);

type Firings = { fired: number; late: number; worst_late: number };

async function firings(db: Db, minuteAt: Date): Promise<Firings | undefined> {
  return db.maybeOne<Firings>(sql`
    select fired, extract(epoch from late)::float8 * 1000 as late,
           extract(epoch from worst_late)::float8 * 1000 as worst_late
      from activity
     where at = date_trunc('minute', ${minuteAt}::timestamptz)`);
}

/** Every test has minutes of its own. */
beforeEach(() => line.time.advance(10 * minute));

async function expectSame(least: Record<string, number>): Promise<void> {
  const seen = await counted(line.db);
  expect(seen).toEqual(await fromRuns(line.db));
  expect(seen.at(-1)).toMatchObject(least);
}

describe('activity of a minute', () => {
  it('a minute counts the runs that ended in it by state, and how long they were queued', async () => {
    const job = await line.job({ tasks: [{ name: 'only', retry: { max_attempts: 2, delay: '1s' } }] });
    await activate(line, job.task('only'), instant(1));
    line.time.advance(1_500);
    await activate(line, Array(3).fill(job.task('only')), [instant(2), instant(3), instant(4)]);
    line.time.advance(500);
    const runs = await claim(line, job.lane);
    line.time.advance(1_000);
    await finish(line, runs, ['success', 'failure', 'timeout', 'error']);
    await expectSame({ success: 1, failure: 1, timeout: 1, error: 1, started: 4, wait: 3.5, worst_wait: 2 });
    line.time.advance(minute);
    // retries are runs of their own
    expect(await queueRetries(line)).toBe(2);
    await runAll(line, job);
    await expectSame({ success: 2, failure: 0, started: 2 });
  });

  it('a minute counts cancelled runs, queued or running; only the running ones count as started', async () => {
    const job = await line.job();
    const [queued = ''] = await activate(line, job.task('only'), instant(1));
    await cancel(line, queued);
    const [running = ''] = await activate(line, job.task('only'), instant(2));
    const runs = await claim(line, job.lane);
    await cancel(line, running);
    await finish(line, runs, 'failure');
    await expectSame({ cancelled: 2, started: 1 });
  });

  it.each([
    ['skip', 1],
    ['cancel_older', 2],
  ])('a minute counts runs that gave way to another instant (%s)', async (overlap, cancelled) => {
    const tasks = [{ name: 'a', depends: ['trigger/t'] }];
    const job = await line.job({ triggers: [daily], tasks, max_active_instants: 1, overlap });
    const due = [new Date(line.time.now() - 250)];
    const how = () => ({ priority: 'normal', at: at(line), dues: due }) as const;
    const firing = (n: number) => [{ triggerId: job.trigger('t'), instantMs: Date.parse(instant(n)) }];
    await fireTriggers(line.db, firing(1), how());
    // with cancel_older also a run that waits behind the first
    if (overlap === 'cancel_older') await fireTriggers(line.db, firing(2), how());
    await fireTriggers(line.db, firing(3), how());
    await expectSame({ cancelled, started: 0 });
    const fired = overlap === 'cancel_older' ? 3 : 2;
    expect(await firings(line.db, at(line))).toEqual({ fired, late: fired * 250, worst_late: 250 });
    await runAll(line, job);
    await expectSame({ cancelled, success: 1 });
  });

  it('a minute counts runs that give way when another ends, and runs of deleted jobs', async () => {
    const tasks = [{ name: 'a', depends: ['trigger/t'] }];
    const job = await line.job({ triggers: [daily], tasks, max_active_instants: 1 });
    await fire(line, Array(4).fill(job.trigger('t')), [1, 2, 3, 4].map(instant));
    await line.db.exec(sql`update gate set overlap = 'skip' where id = ${job.id}`);
    await runAll(line, job);
    await expectSame({ success: 1, cancelled: 2 });
    await line.db.exec(sql`select delete_jobs(${[job.id]}::uuid[], 'test', ${at(line)})`);
    await expectSame({ success: 1, cancelled: 3 });
  });

  it('a minute counts runs that were lost three times as errors', async () => {
    const lost = await line.job();
    await activate(line, lost.task('only'), instant(1));
    for (let n = 0; n < 3; n++) {
      await claim(line, lost.lane);
      line.time.advance(10 * minute);
      await takeBack(line);
    }
    await expectSame({ error: 1 });
  });

  it('a minute counts a result once, however often it is reported', async () => {
    const job = await line.job();
    await activate(line, Array(2).fill(job.task('only')), [instant(1), instant(2)]);
    const runs = await claim(line, job.lane);
    await finish(line, [...runs, ...runs]);
    await finish(line, runs, 'failure');
    await expectSame({ success: 2, failure: 0, started: 2 });
  });

  it('concurrent connections are all counted, without deadlocks', async () => {
    const jobs = await Promise.all(Array.from({ length: 4 }, () => line.job({ triggers: [daily] })));
    const before = await firings(line.db, at(line));
    expect(before).toBeUndefined();
    await onConnections(
      line,
      jobs.map((job) => async (stage) => {
        for (let n = 1; n <= 20; n++) {
          const firing = [{ triggerId: job.trigger('t'), instantMs: Date.parse(instant(n)) }];
          await fireTriggers(stage.db, firing, { priority: 'normal', at: at(stage), dues: [at(stage)] });
          await activate(stage, job.task('only'), instant(n));
          await runAll(stage, job);
        }
      }),
    );
    await expectSame({ success: 80 });
    expect(await firings(line.db, at(line))).toMatchObject({ fired: 80 });
  });

  it('activity is deleted after thirty days', async () => {
    const job = await line.job();
    await activate(line, job.task('only'), instant(1));
    await runAll(line, job);
    const first = Math.floor(line.time.now() / minute) * minute;
    line.time.advance(30 * day - minute);
    const minutes = async () =>
      (await line.db.rows<{ at: Date }>(sql`select at from activity order by at`)).map((row) => row.at.getTime());
    await pruneTenant(makeContext(line));
    expect(await minutes()).toContain(first);
    line.time.advance(2 * minute);
    await pruneTenant(makeContext(line));
    expect(await minutes()).toEqual([]);
    // the runs that `expectSame` compares must go as well
    await line.db.exec(sql`delete from run`);
  });
});

describe('lateness of firings', () => {
  const made = () => line.job({ triggers: [daily], tasks: [{ name: 'a', depends: ['trigger/t'] }] });

  it('lateness counts from the due time, also for a trigger without tasks', async () => {
    const [used, unused] = [await made(), await line.job({ triggers: [daily] })];
    const firing = (job: typeof used, n: number) => ({
      triggerId: job.trigger('t'),
      instantMs: Date.parse(instant(n)),
    });
    const due = (ms: number): Date => new Date(line.time.now() - ms);
    await fireTriggers(line.db, [firing(unused, 1)], { priority: 'normal', at: at(line), dues: [due(30)] });
    expect(await firings(line.db, at(line))).toEqual({ fired: 1, late: 30, worst_late: 30 });
    // one of these has fired before, and was counted then; a clock that is behind does not make lateness negative
    const both = [firing(unused, 1), firing(used, 1)];
    await fireTriggers(line.db, both, { priority: 'normal', at: at(line), dues: [due(500), due(70)] });
    await fireTriggers(line.db, [firing(used, 2)], { priority: 'normal', at: at(line), dues: [due(-5)] });
    await fireTriggers(line.db, both, { priority: 'normal', at: at(line), dues: [due(900), due(900)] });
    expect(await firings(line.db, at(line))).toEqual({ fired: 3, late: 100, worst_late: 70 });
  });

  it('missed instants and instants of a backfill are not counted', async () => {
    const job = await made();
    await fire(line, [job.trigger('t'), job.trigger('t')], [instant(1), instant(2)]);
    await fire(line, job.trigger('t'), instant(1), { cause: 'a backfill' });
    expect(await firings(line.db, at(line))).toBeUndefined();
  });
});

describe('activity of a scheduler', () => {
  let all: Schedule;
  beforeAll(async () => {
    all = await Schedule.make();
  });
  afterEach(() => all.stop());
  afterAll(() => all.close());

  it('a scheduler counts instants that fire on time, and not those that it catches up', async () => {
    const job = await all.triggered({ start: after(-5 * minute), offset: '30s' });
    await all.start();
    await all.waitForFiringCount(job, 5);
    expect(await all.line.db.rows(sql`select 1 from activity where fired > 0`)).toEqual([]);
    await all.waitsFor(after(30_000));
    all.line.time.moveTo(after(30_040));
    await all.waitForFiringCount(job, 6);
    await until('it is counted', async () => {
      const seen = await firings(all.line.db, new Date(after(0)));
      return seen?.fired === 1 || undefined;
    });
    expect(await firings(all.line.db, new Date(after(0)))).toEqual({ fired: 1, late: 40, worst_late: 40 });
  });

  it('with thousands of triggers due at once, lateness includes the wait for earlier commits', async () => {
    const many = await Schedule.make();
    try {
      const { line: own, ctx } = many;
      const triggers = Array.from({ length: 5_001 }, (_, n) => ({ name: `t${n}`, start: after(minute), period: '1d' }));
      for (let i = 0; i < triggers.length; i += 1_000) await own.job({ triggers: triggers.slice(i, i + 1_000) });
      await many.start();
      await many.waitsFor(after(minute));
      let fired = 0;
      triggersFired.on(ctx.telemetry, (some) => {
        if (fired === 0) own.time.advance(1_000);
        fired += some.triggers;
      });
      own.time.moveTo(after(minute));
      await until('all have fired', () => fired === triggers.length || undefined);
      expect(await firings(own.db, new Date(after(minute)))).toEqual({ fired, late: 1_000, worst_late: 1_000 });
    } finally {
      await many.close();
    }
  });

  it('a scheduler reports the next triggers in order', async () => {
    const later = await all.triggered({ start: after(20 * minute) });
    const sooner = await all.triggered({ start: after(10 * minute) });
    await all.start();
    await until('its status', () => {
      const next = all.ctx.statuses.at(-1)?.nextTriggers ?? [];
      const [first, second] = [next.indexOf(sooner.trigger('t')), next.indexOf(later.trigger('t'))];
      return (first >= 0 && second > first) || undefined;
    });
  });
});
