/** The catch-up service: long and concurrent catch-ups, ones that wait, fail or die, and live triggers beside them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeContext } from '../../../test/harness/engine-context.ts';
import { claim, finish, makeDam, runsOf, type TestJob } from '../../../test/harness/pipeline.ts';
import { after, minute, Schedule } from '../../../test/harness/scheduling.ts';
import { until } from '../../../test/harness/until.ts';
import { sql } from '../../kernel/sql.ts';
import { systemTime } from '../../kernel/time.ts';
import { makeScheduler } from '../scheduler.ts';
import { instantsCaughtUp, triggersFired } from '../telemetry.ts';

let all: Schedule;
beforeEach(async () => {
  all = await Schedule.make();
  // no leases are swept here
  all.ctx = makeContext({ ...all.line, servingSince: async () => undefined });
});
afterEach(() => all.close());

const minutesAgo = (n: number): { start: string; period: string } => ({ start: after(-n * minute), period: '1m' });
const countFired = async (job: TestJob): Promise<number> => (await all.fired(job)).length;

/** Claims and finishes queued runs until none is left. */
async function runQueued(job: TestJob): Promise<void> {
  for (;;) {
    const runs = await claim(all.line, job.lane, { places: 1_000 });
    if (runs.length === 0) return;
    await finish(all.line, runs);
  }
}

describe('a catch-up', () => {
  it('a catch-up waits while thousands of its runs are unclaimed, and resumes when they are claimed', async () => {
    const job = await all.triggered(minutesAgo(5_999));
    await all.start();
    await all.waitUntilHeldBack();
    const first = await countFired(job);
    expect(first).toBeGreaterThanOrEqual(5_000);
    expect(first).toBeLessThan(6_000);
    await runQueued(job);
    await all.waitUntilCaughtUp(job);
    expect(await countFired(job)).toBe(6_000);
  });

  it('a catch-up that waits does not block others', async () => {
    const dam = await makeDam(all.line);
    const [held, free] = [await all.triggered(minutesAgo(50)), await all.triggered(minutesAgo(50))];
    await dam.hold(held.trigger('t'));
    await all.start();
    await all.waitForFiringCount(free, 51);
    expect(await countFired(held)).toBe(0);
    await dam.letGo(held.trigger('t'));
    await all.waitUntilCaughtUp(held);
    expect(await countFired(held)).toBe(51);
  });

  it('a catch-up whose trigger became invalid does not block others, and is retried', async () => {
    const dam = await makeDam(all.line);
    const jobs = [await all.triggered(minutesAgo(50)), await all.triggered(minutesAgo(50))] as const;
    for (const job of jobs) await dam.hold(job.trigger('t'));
    await all.start();
    for (const job of jobs) await all.waitUntilNoted(job);
    const [bad, good] = jobs;
    await all.line.db.exec(sql`update trigger set period_ms = null, cron = 'nonsense' where id = ${bad.trigger('t')}`);
    for (const job of jobs) await dam.letGo(job.trigger('t'));
    await all.waitUntilCaughtUp(good);
    expect(await countFired(good)).toBe(51);
    await until('it is told', () => all.ctx.faults.length > 0 || undefined);
    expect(await countFired(bad)).toBe(0);
    await all.line.db.exec(sql`update trigger set period_ms = 60000, cron = null where id = ${bad.trigger('t')}`);
    all.line.time.advance(30_000);
    await all.waitUntilCaughtUp(bad);
    expect(await countFired(bad)).toBe(51);
  });

  it('a catch-up that the database rejects does not block others, and is retried', async () => {
    const jobs = [];
    for (let n = 0; n < 5; n++) jobs.push(await all.triggered(minutesAgo(20)));
    const [bad, ...good] = jobs.toSorted((a, b) => (a.trigger('t') < b.trigger('t') ? -1 : 1));
    if (bad === undefined) throw new Error('there are five');
    await all.line.db.exec(sql`
      create function refuse() returns trigger language plpgsql as 'begin raise exception ''not now''; end'`);
    await all.line.pool.query(`
      create trigger refuse before insert on firing for each row when (new.trigger_id = '${bad.trigger('t')}')
      execute function refuse()`);
    await all.start();
    for (const job of good) await all.waitForFiringCount(job, 21);
    expect(await countFired(bad)).toBe(0);
    expect(all.ctx.faults).toHaveLength(1);
    await all.line.db.exec(sql`drop trigger refuse on firing`);
    all.line.time.advance(30_000);
    await all.waitUntilCaughtUp(bad);
    expect(await countFired(bad)).toBe(21);
  });

  it.each(['earliest', 'latest', 'random'])(
    'a catch-up that dies before it records its progress resumes, %s first, and fires nothing twice',
    async (catchup) => {
      const job = await all.triggered({ ...minutesAgo(2_999), catchup });
      await all.line.db.exec(sql`
      create function refuse() returns trigger language plpgsql as 'begin raise exception ''dead''; end'`);
      await all.line.db.exec(sql`
      create trigger refuse before update or delete on catchup for each row execute function refuse()`);
      await all.start();
      await until('it has fired, and could not note it', () => all.ctx.faults.length > 0 || undefined);
      await all.stop();
      const before = await countFired(job);
      expect(before).toBeGreaterThan(0);
      expect(before).toBeLessThan(3_000);
      await all.line.db.exec(sql`drop trigger refuse on catchup`);
      await all.start();
      await all.waitUntilCaughtUp(job);
      expect(await countFired(job)).toBe(3_000);
      expect(await runsOf(all.line, job.task('a'))).toBe(3_000);
    },
  );

  it('the catch-up of many small triggers takes few commits, that of a trigger with many tasks takes many', async () => {
    const commits: number[] = [];
    instantsCaughtUp.on(all.ctx.telemetry, ({ runs }) => commits.push(runs));
    const triggers = Array.from({ length: 200 }, (_, n) => ({ name: n === 0 ? 't' : `t${n}`, ...minutesAgo(2) }));
    const depends = triggers.map(({ name }) => `trigger/${name}`);
    const many = await all.line.job({ triggers, tasks: [{ name: 'a', depends, threshold: 1 }] });
    await all.start();
    await until('all ran', async () => (await runsOf(all.line, many.task('a'))) === 600 || undefined);
    expect(commits.length).toBeLessThan(8);
    commits.length = 0;
    const tasks = Array.from({ length: 60 }, (_, n) => ({ name: n === 0 ? 'a' : `a${n}`, depends: ['trigger/t'] }));
    const wide = await all.triggered(minutesAgo(49), { tasks });
    all.tell(wide);
    await all.waitForFiringCount(wide, 50);
    await until('the last is told', () => commits.reduce((sum, runs) => sum + runs, 0) === 3_000 || undefined);
    expect(Math.max(...commits)).toBeLessThanOrEqual(1_000);
  });
});

describe('a live trigger', () => {
  it('a live trigger fires every second while twenty thousand missed instants of another are caught up and run', {
    timeout: 120_000,
  }, async () => {
    const nowMs = Date.now();
    const missed = 20_000;
    const ago = new Date(nowMs - missed * 1_000).toISOString();
    const job = await all.triggered({ start: ago, end: new Date(nowMs).toISOString(), period: '1s' });
    await all.triggered({ start: new Date(nowMs).toISOString(), period: '1s' });
    const ctx = makeContext({ ...all.line, time: systemTime, servingSince: async () => undefined });
    const lateness: number[] = [];
    let caughtUp = 0;
    triggersFired.on(ctx.telemetry, ({ latenessMs }) => lateness.push(...latenessMs));
    instantsCaughtUp.on(ctx.telemetry, ({ triggers }) => (caughtUp += triggers));
    const scheduler = makeScheduler(ctx);
    const startedMs = performance.now();
    await scheduler.start();
    await until(
      'all is caught up',
      async () => {
        await runQueued(job);
        return (caughtUp === missed && lateness.length >= 3) || undefined;
      },
      100_000,
    );
    const wholeMs = performance.now() - startedMs;
    await scheduler.stop();
    // the first waited for the start; a firing that waited for the whole catch-up would be far later
    expect(Math.max(...lateness.slice(1))).toBeLessThan(wholeMs / 2);
    expect(await countFired(job)).toBe(missed);
    expect(ctx.faults).toEqual([]);
  });
});
