/**
 * The twenty severe bugs of Waterwheel, by number (its scheduler was read, not run). Each title states the behaviour that
 * replaces the bug. A bug of the whole scheduler is tested with whole schedulers, a race with concurrent stages.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseJob } from '../../src/jobs/document/parse-job.ts';
import { sql } from '../../src/kernel/sql.ts';
import { ensureDatabase, withClient } from '../../src/postgres/databases.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { processRuntime } from '../../src/runtimes/process/process.ts';
import { freshAddress } from '../harness/fresh-database.ts';
import {
  activate,
  cancel,
  claim,
  countOf,
  finish,
  fire,
  historyOf,
  onConnections,
  queueRetries,
  release,
  runAll,
  runsOf,
  takeBack,
  type TestJob,
} from '../harness/pipeline.ts';
import { after, minute, noon, Schedule } from '../harness/scheduling.ts';
import { until } from '../harness/until.ts';
import { makeTask, Recorder } from './task.ts';

let all: Schedule;
beforeEach(async () => {
  all = await Schedule.make();
});
afterEach(() => all.close());

const triggered = (task: object = {}, trigger: object = {}): Promise<TestJob> =>
  all.triggered({ start: after(minute), ...trigger }, { tasks: [{ name: 'a', depends: ['trigger/t'], ...task }] });
/** A job in which c joins a and b. */
const join = (more: object = {}): Promise<TestJob> =>
  all.line.job({ tasks: [{ name: 'a' }, { name: 'b' }, { name: 'c', depends: ['task/a', 'task/b'], ...more }] });
const both = (job: TestJob): Promise<string[]> => activate(all.line, [job.task('a'), job.task('b')], [noon, noon]);

describe('bugs of Waterwheel', () => {
  it('bug 1: a failing task without `retry` does not stop the scheduler', async () => {
    const job = await triggered();
    await all.start();
    all.line.time.moveTo(after(minute));
    await all.firedAre(job, [after(minute)]);
    expect(await runAll(all.line, job, 'failure')).toHaveLength(1);
    expect(await historyOf(all.line, job.task('a'))).toMatchObject([{ state: 'failure', attempt: 1 }]);
    all.line.time.advance(minute);
    await all.firedAre(job, [after(minute), after(2 * minute)]);
    expect(all.ctx.faults).toEqual([]);
  });

  it('bug 2: a join runs once, even if its parents end concurrently', async () => {
    for (let round = 0; round < 20; round++) {
      const job = await join();
      await both(job);
      const runs = await claim(all.line, job.lane);
      await onConnections(
        all.line,
        runs.map((run) => (stage) => finish(stage, [run])),
      );
      expect(await runsOf(all.line, job.task('c'))).toBe(1);
      expect(await countOf(all.line, job.task('c'), noon)).toBe(0);
    }
  });

  it('bug 3: counts are never negative after a retry, a lost worker or a cancellation', async () => {
    const job = await join({ retry: { max_attempts: 2, delay: '1s' } });
    await both(job);
    await runAll(all.line, job);
    await runAll(all.line, job, 'failure');
    all.line.time.advance(1_000);
    await queueRetries(all.line);
    await claim(all.line, job.lane);
    all.line.time.advance(31_000);
    expect(await takeBack(all.line)).toMatchObject({ returned: 1 });
    const { id = '' } =
      (await all.line.db.maybeOne<{ id: string }>(sql`
      select id from live where task_id = ${job.task('c')}`)) ?? {};
    expect(await cancel(all.line, id)).toBe('cancelled');
    expect(await countOf(all.line, job.task('c'), noon)).toBe(0);
    await both(job);
    await runAll(all.line, job);
    expect(await claim(all.line, job.lane)).toHaveLength(1);
  });

  it('bug 4: a scheduler that starts does not repeat runs that others have in hand', async () => {
    const job = await join();
    await both(job);
    const held = await all.triggered({ start: after(-minute) }, { paused: true });
    await fire(all.line, held.trigger('t'), noon, { cause: 'by hand' });
    await held.change({ paused: false });
    await Promise.all([all.start(), all.start()]);
    await all.start();
    // one by hand, one caught up by its schedule
    const atNoon = () =>
      all.line.db.rows(sql`select 1 from live where task_id = ${held.task('a')} and instant = ${noon}`);
    await until('both are there', async () => (await atNoon()).length >= 2 || undefined);
    await all.stop();
    expect(await release(all.line)).toBe(0);
    expect(await runsOf(all.line, job.task('a'))).toBe(1);
    expect(await atNoon()).toHaveLength(2);
  });

  it('bug 5: schedulers that run at once fire a trigger once', async () => {
    const job = await triggered();
    await Promise.all([all.start(), all.start(), all.start()]);
    for (let n = 1; n <= 5; n++) {
      all.line.time.moveTo(after(n * minute));
      await all.waitForFiringCount(job, n);
    }
    expect(await runsOf(all.line, job.task('a'))).toBe(5);
  });

  it('bug 6: triggers that were added later are fired by the schedulers that start next', async () => {
    await Promise.all([all.start(), all.start()]);
    const job = await triggered();
    all.tell(job);
    all.line.time.moveTo(after(minute));
    await all.waitForFiringCount(job, 1);
    await all.stop();
    await Promise.all([all.start(), all.start()]);
    all.line.time.moveTo(after(2 * minute));
    await all.waitForFiringCount(job, 2);
    expect(await runsOf(all.line, job.task('a'))).toBe(2);
  });

  it('bug 7: a retry is queued once, however many schedulers know it', async () => {
    const job = await all.line.job({ tasks: [{ name: 'a', retry: { max_attempts: 3, delay: '10s' } }] });
    await activate(all.line, job.task('a'), noon);
    await all.start();
    await runAll(all.line, job, 'failure');
    await all.stop();
    await Promise.all([all.start(), all.start()]);
    all.line.time.advance(10_000);
    await until('retried', async () => (await runsOf(all.line, job.task('a'))) > 1 || undefined);
    await all.stop();
    expect(await queueRetries(all.line)).toBe(0);
    expect(await runsOf(all.line, job.task('a'))).toBe(2);
  });

  it('bug 8: many stale runs are taken back at once, while their late results arrive', async () => {
    const job = await all.line.job();
    const instants = Array.from({ length: 600 }, (_, i) => after(i * minute));
    await activate(
      all.line,
      instants.map(() => job.task('only')),
      instants,
    );
    const stale = await claim(all.line, job.lane, { places: 600 });
    all.line.time.advance(31_000);
    // their late results arrive while they are taken back
    const [back, late] = await onConnections<unknown>(all.line, [
      takeBack,
      (stage) => finish(stage, stale.slice(0, 300)),
    ]);
    expect(back).toBeDefined();
    expect(late).toBeDefined();
    await takeBack(all.line);
    await finish(all.line, await claim(all.line, job.lane, { places: 600 }));
    expect(await historyOf(all.line, job.task('only'))).toHaveLength(600);
  });

  it('bug 9: a repeated or late result does not advance the children again', async () => {
    const job = await all.line.job({ tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a'] }] });
    await activate(all.line, job.task('a'), noon);
    const first = await claim(all.line, job.lane);
    all.line.time.advance(31_000);
    await takeBack(all.line);
    const second = await claim(all.line, job.lane);
    expect(await finish(all.line, first)).toMatchObject({ applied: 0, created: 0 });
    expect(await finish(all.line, second)).toMatchObject({ applied: 1, created: 1 });
    for (const runs of [first, second]) expect(await finish(all.line, runs)).toMatchObject({ applied: 0, created: 0 });
    expect(await runsOf(all.line, job.task('b'))).toBe(1);
  });

  it.each(['timeout', 'error'] as const)('bug 10: a run that ends in %s is retried, then followed', async (state) => {
    const job = await all.line.job({
      tasks: [
        { name: 'a', retry: { max_attempts: 2, delay: '1s', on: ['failure', 'timeout', 'error'] } },
        { name: 'b', depends_failure: ['task/a'] },
      ],
    });
    await activate(all.line, job.task('a'), noon);
    await runAll(all.line, job, state);
    all.line.time.advance(1_000);
    expect(await queueRetries(all.line)).toBe(1);
    await runAll(all.line, job, state);
    expect((await claim(all.line, job.lane)).map((run) => run.task_id)).toEqual([job.task('b')]);
  });

  it('bug 11: all processes of a task that has timed out are killed', async () => {
    const output = new Recorder();
    const task = makeTask({
      kind: 'process',
      command: ['/bin/sh', '-c', 'trap "" TERM; sleep 600 & echo $$ $!; wait; wait'],
      cwd: null,
    });
    const killer = new AbortController();
    const running = processRuntime({ environment: process.env, graceMs: 100 }).run(task, output, killer.signal);
    await vi.waitFor(() => expect(output.text()).toMatch(/\d+ \d+\n/), { timeout: 5_000, interval: 5 });
    killer.abort('timeout');
    await running;
    const alive = (pid: string): boolean => {
      try {
        return process.kill(Number(pid), 0);
      } catch {
        return false;
      }
    };
    const pids = output.text().trim().split(' ');
    await until('all of its processes are gone', () => !pids.some(alive) || undefined);
  });

  it('bug 12: a run whose hint was lost is found and offered', async () => {
    const job = await all.line.job();
    let offers = 0;
    all.ctx.hub.on('ready', all.ctx.tenant.id, () => offers++);
    await activate(all.line, job.task('only'), noon);
    expect(offers).toBe(0);
    await all.start();
    await until('it is offered', () => {
      all.line.time.advance(1_000);
      return offers > 1 || undefined;
    });
    expect(await claim(all.line, job.lane)).toHaveLength(1);
  });

  it('bug 13: an activated token that did not exist yet runs once, also after a restart', async () => {
    const job = await join();
    await activate(all.line, job.task('c'), noon);
    expect(await countOf(all.line, job.task('c'), noon)).toBe(0);
    await runAll(all.line, job);
    await all.start();
    await all.stop();
    await all.start();
    await until('it has looked for held tokens', () => all.line.time.sleeping > 2 || undefined);
    expect(await runsOf(all.line, job.task('c'))).toBe(1);
  });

  it('bug 14: a task with `depends: []` has threshold 1 and does not run at every start', async () => {
    const job = await all.line.job({ tasks: [{ name: 'a', depends: [] }] });
    await activate(all.line, job.task('a'), noon);
    await runAll(all.line, job);
    await all.start();
    await all.stop();
    await all.start();
    await until('it has looked for held tokens', () => all.line.time.sleeping > 2 || undefined);
    expect(await runsOf(all.line, job.task('a'))).toBe(1);
    expect(await all.line.db.one(sql`select threshold from task where id = ${job.task('a')}`)).toEqual({
      threshold: 1,
    });
  });

  it.each(['0s', '10ms', '-1m'])('bug 15: a period of %s is rejected, as its catch-up would never end', (period) => {
    const parsed = parseJob({ project: 'p', name: 'j', triggers: [{ name: 't', start: noon, period }] });
    expect(parsed.ok ? [] : parsed.faults.map((fault) => fault.path)).toEqual(['triggers[0].period']);
  });

  it('bug 16: catch-up `none` keeps instants across a short restart, and offsets do not fire early', async () => {
    const none = await triggered({}, { catchup: 'none' });
    const late = await triggered({}, { offset: '10m' });
    await all.start();
    all.line.time.moveTo(after(minute));
    await all.firedAre(none, [after(minute)]);
    await all.stop();
    all.line.time.moveTo(after(2 * minute + 20_000));
    await all.start();
    await all.firedAre(none, [after(minute), after(2 * minute)]);
    expect(await all.fired(late)).toEqual([]);
    all.line.time.moveTo(after(11 * minute));
    await all.firedAre(late, [after(minute)]);
  });

  it('bug 17: unpausing by PUT releases ready tokens at once', async () => {
    const job = await all.triggered({ start: after(10 * minute) }, { paused: true });
    await fire(all.line, job.trigger('t'), noon, { cause: 'by hand' });
    await all.start();
    await job.change({ paused: false });
    all.tell(job);
    await until('released', async () => (await runsOf(all.line, job.task('a'))) === 1 || undefined);
  });

  it('bug 18: a cron expression whose years are over does not stop other triggers', async () => {
    const over = await triggered({}, { period: undefined, cron: '0 0 0 1 1 * 2020', catchup: 'none' });
    const other = await triggered();
    await all.start();
    all.line.time.moveTo(after(minute));
    await all.firedAre(over, [after(minute)]);
    await all.firedAre(other, [after(minute)]);
    all.line.time.moveTo(after(2 * minute));
    await all.firedAre(other, [after(minute), after(2 * minute)]);
    expect(all.ctx.faults).toEqual([]);
  });

  it('bug 19: removed tasks and triggers stop, and a job can be deleted', async () => {
    const job = await triggered();
    await all.start();
    await job.change({ triggers: [], tasks: [{ name: 'other' }] });
    all.tell(job);
    const gone = await triggered();
    await all.line.db.exec(sql`select * from delete_jobs(${[gone.id]}::uuid[], 'test', ${new Date(noon)})`);
    await all.stop();
    await all.start();
    all.line.time.moveTo(after(5 * minute));
    await all.waitsFor('2100-01-01T00:00:00.000Z');
    expect([await all.fired(job), await all.fired(gone)]).toEqual([[], []]);
    expect([await runsOf(all.line, job.task('a')), await runsOf(all.line, gone.task('a'))]).toEqual([0, 0]);
  });

  it('bug 20: processes that start at once on an empty database do not collide', async () => {
    const missing = freshAddress();
    const source = await ownSchemaSource('tenant');
    const starting = Array.from({ length: 4 }, async () => {
      await ensureDatabase(missing.address);
      return withClient(missing.address, (client) => migrate(client, { ...source, version: '1' }));
    });
    expect((await Promise.all(starting)).filter(({ length }) => length > 0)).toHaveLength(1);
    await missing.close();
  });
});
