/** A scheduler as a whole, on a tenant's database of its own per test, with a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../test/harness/engine-context.ts';
import {
  activate,
  claim,
  finish,
  type JobParts,
  makePipeline,
  type Pipeline,
  runsOf,
  type TestJob,
} from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import type { Service } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { makeScheduler } from './scheduler.ts';

let line: Pipeline;
let ctx: TestContext;
const running: Service[] = [];
beforeEach(async () => {
  line = await makePipeline();
  ctx = makeContext(line);
  await triggered({ start: sentinel });
});
afterEach(async () => {
  await stop();
  await line.close();
});

/** The clock starts here. */
const noon = '2026-06-01T00:00:00.000Z';
const minute = 60_000;
const day = 24 * 60 * minute;
const after = (ms: number): string => new Date(Date.parse(noon) + ms).toISOString();

async function start(): Promise<Service> {
  const scheduler = makeScheduler(ctx);
  running.push(scheduler);
  await scheduler.start();
  return scheduler;
}
async function stop(): Promise<void> {
  await Promise.all(running.splice(0).map((scheduler) => scheduler.stop()));
}

const triggered = (trigger: object, more: JobParts = {}): Promise<TestJob> =>
  line.job({
    triggers: [{ name: 't', period: '1m', ...trigger }],
    tasks: [{ name: 'a', depends: ['trigger/t'] }],
    ...more,
  });
const tell = (job: TestJob): void => ctx.broker.update(ctx.tenant, [job.id]);

async function fired(job: TestJob): Promise<string[]> {
  const rows = await line.db.rows<{ instant: Date }>(sql`
    select instant from firing where trigger_id = ${job.trigger('t')} order by instant`);
  return rows.map((row) => row.instant.toISOString());
}
const firedAre = (job: TestJob, instants: readonly string[]) =>
  until(`fires ${instants.join(' ')}`, async () => {
    const seen = await fired(job);
    if (seen.length > instants.length) throw new Error(`fired too often: ${seen.join(' ')}`);
    return seen.join() === instants.join() || undefined;
  });
/** Until the trigger processor has dealt with everything before that moment and waits for it, and nothing is caught up. */
const waitsFor = (at: string) =>
  until(`waits for ${at}`, async () => {
    if (!line.time.isAwaited(at)) return undefined;
    return (await line.db.rows(sql`select 1 from catchup`)).length === 0 || undefined;
  });
/** Far away: what the trigger processor waits for when there is nothing else. */
const sentinel = '2100-01-01T00:00:00.000Z';
const marks = (job: TestJob) => line.db.one(sql`select earliest, latest from trigger where id = ${job.trigger('t')}`);

describe('a trigger', () => {
  it('fires on time, not before, and goes on', async () => {
    const job = await triggered({ start: after(minute) });
    await start();
    line.time.moveTo(after(minute - 1));
    await waitsFor(after(minute));
    expect(await fired(job)).toEqual([]);
    line.time.advance(1);
    await firedAre(job, [after(minute)]);
    line.time.advance(minute);
    await firedAre(job, [after(minute), after(2 * minute)]);
    expect((await claim(line, job.lane)).map((run) => run.priority)).toEqual(['normal', 'normal']);
  });

  it('fires its offset after or before its instant', async () => {
    const late = await triggered({ start: after(minute), offset: '30s' });
    const early = await triggered({ start: after(minute), offset: '-30s' });
    await start();
    line.time.moveTo(after(0.5 * minute));
    await firedAre(early, [after(minute)]);
    line.time.moveTo(after(1.5 * minute - 1));
    await firedAre(early, [after(minute), after(2 * minute)].slice(0, 1));
    expect(await fired(late)).toEqual([]);
    line.time.advance(1);
    await firedAre(late, [after(minute)]);
  });

  it('by cron fires at the times it names, `start` included, `end` excluded', async () => {
    const job = await triggered({
      period: undefined,
      cron: '*/2 * * * *',
      start: after(minute),
      end: after(6 * minute),
    });
    await start();
    for (let i = 1; i <= 10; i++) {
      line.time.moveTo(after(i * minute));
      await until('the turn is over', () => line.time.sleeping > 0 || undefined);
    }
    await firedAre(job, [after(minute), after(2 * minute), after(4 * minute)]);
  });

  it('whose years are over ends quietly, and the others go on (Waterwheel’s bug 18)', async () => {
    const ended = await triggered({
      period: undefined,
      cron: '0 0 0 1 1 * 2027',
      start: '2027-01-01T00:00:00Z',
      catchup: 'none',
    });
    const other = await triggered({ start: '2027-01-01T00:00:00Z', period: '1h' });
    await start();
    line.time.moveTo('2027-01-01T00:00:00Z');
    await firedAre(ended, ['2027-01-01T00:00:00.000Z']);
    await waitsFor('2027-01-01T01:00:00.000Z');
    line.time.moveTo('2027-01-01T01:00:00Z');
    await firedAre(other, ['2027-01-01T00:00:00.000Z', '2027-01-01T01:00:00.000Z']);
    expect(await fired(ended)).toHaveLength(1);
    expect(ctx.faults).toEqual([]);
  });

  it('that cannot be understood does not keep the others from firing', async () => {
    const bad = await triggered({ start: after(minute) });
    const good = await triggered({ start: after(minute) });
    await line.db.exec(sql`update trigger set period_ms = null, cron = 'nonsense' where id = ${bad.trigger('t')}`);
    await start();
    line.time.moveTo(after(minute));
    await firedAre(good, [after(minute)]);
    expect(ctx.faults).toHaveLength(1);
  });

  it('tells how many wait and which is next', async () => {
    const job = await triggered({ start: after(minute) });
    await triggered({ start: after(2 * minute) });
    await start();
    await until('its status', () => ctx.statuses.at(-1)?.queuedTriggers === 3 || undefined);
    expect(ctx.statuses.at(-1)?.nextTriggerId).toBe(job.trigger('t'));
  });
});

describe('a change', () => {
  it('is picked up: a new job, another schedule, a pause, an unpause, a deletion', async () => {
    await start();
    const job = await triggered({ start: after(minute), catchup: 'none' });
    tell(job);
    await waitsFor(after(minute));
    line.time.moveTo(after(minute));
    await firedAre(job, [after(minute)]);

    const triggers = [{ name: 't', start: after(1.5 * minute), period: '2m', catchup: 'none' }];
    await job.change({ triggers });
    tell(job);
    await waitsFor(after(1.5 * minute));
    line.time.moveTo(after(1.5 * minute));
    await firedAre(job, [after(minute), after(1.5 * minute)]);

    await job.change({ triggers, paused: true });
    tell(job);
    await waitsFor(sentinel);
    line.time.moveTo(after(10.75 * minute));
    await job.change({ triggers, paused: false });
    tell(job);
    await waitsFor(after(11.5 * minute));
    line.time.moveTo(after(11.5 * minute));
    const seen = [after(minute), after(1.5 * minute), after(11.5 * minute)];
    await firedAre(job, seen);

    await line.db.exec(sql`select * from delete_jobs(${[job.id]}::uuid[], 'test', ${new Date()})`);
    const about = sql`${[job.id]}::uuid[], 'test', '{null}', ${new Date()}, '{"{}"}'`;
    await line.db.exec(sql`select append_events(2, '{job.deleted}', ${about})`);
    tell(job);
    await waitsFor(sentinel);
    line.time.moveTo(after(20 * minute));
    await waitsFor(sentinel);
    expect(await fired(job)).toEqual(seen);
  });

  it('that cannot be taken in at once, because the database refuses, is taken in later, with what it missed', async () => {
    await start();
    await line.db.exec(sql`
      create function refuse() returns trigger language plpgsql as 'begin raise exception ''not now''; end'`);
    await line.db.exec(
      sql`create trigger refuse before insert on catchup for each statement execute function refuse()`,
    );
    const job = await triggered({ start: after(-3 * minute), period: '1m' });
    tell(job);
    await until('it has failed', () => ctx.faults.length > 1 || undefined);
    expect(await marks(job)).toEqual({ earliest: null, latest: null });
    await line.db.exec(sql`drop trigger refuse on catchup`);
    await firedAre(job, [after(-3 * minute), after(-2 * minute), after(-minute), after(0)]);
    line.time.advance(minute);
    await firedAre(job, [after(-3 * minute), after(-2 * minute), after(-minute), after(0), after(minute)]);
  });

  it('of pausing while it catches up stops that, and unpausing goes on with it', async () => {
    const triggers = [{ name: 't', start: after(-4_000 * minute), period: '1m' }];
    const job = await triggered(triggers[0] ?? {});
    await start();
    await until('some have fired', async () => (await fired(job)).length > 0 || undefined);
    await job.change({ triggers, paused: true });
    const [{ pieces } = { pieces: 0 }] = await line.db.rows<{ pieces: number }>(sql`select pieces from catchup`);
    expect(pieces).toBeGreaterThan(1);
    tell(job);
    // its sweep comes in half a minute
    await until('it stands still', () => line.time.isAwaited(after(minute / 2)) || undefined);
    expect((await fired(job)).length).toBeLessThan(4_000);
    await job.change({ triggers, paused: false });
    tell(job);
    await until('all have fired', async () => (await fired(job)).length === 4_001 || undefined);
  });
});

describe('what was missed', () => {
  const missed = (policy: string, more: object = {}) =>
    triggered({ start: after(-9 * day), period: '1d', catchup: policy, ...more });
  const back = (from: number, to: number): string[] =>
    Array.from({ length: from - to + 1 }, (_, i) => after((i - from) * day));
  /** Instants in the order in which their runs are handed out, with the priorities. */
  async function order(job: TestJob): Promise<{ instants: string[]; priorities: Set<string> }> {
    const instants: string[] = [];
    const priorities = new Set<string>();
    for (;;) {
      const [run] = await claim(line, job.lane, { places: 1 });
      if (run === undefined) return { instants, priorities };
      instants.push(run.instant.toISOString());
      priorities.add(run.priority);
    }
  }

  it('is fired from the earliest on, at backfill priority', async () => {
    const job = await missed('earliest');
    await start();
    await firedAre(job, back(9, 0));
    await waitsFor(after(day));
    expect(await order(job)).toEqual({ instants: back(9, 0), priorities: new Set(['backfill']) });
    expect(await marks(job)).toEqual({ earliest: new Date(after(-9 * day)), latest: new Date(noon) });
  });

  it('is fired from the latest back', async () => {
    const job = await missed('latest');
    await start();
    await firedAre(job, back(9, 0));
    await waitsFor(after(day));
    expect((await order(job)).instants).toEqual(back(9, 0).toReversed());
  });

  it('is fired in any order', async () => {
    const job = await missed('random', { start: after(-40 * day) });
    await start();
    await firedAre(job, back(40, 0));
    await waitsFor(after(day));
    const { instants } = await order(job);
    expect(instants).not.toEqual(back(40, 0));
    expect(instants).not.toEqual(back(40, 0).toReversed());
    expect(instants.toSorted()).toEqual(back(40, 0));
  });

  it('is not fired with none, and what comes is', async () => {
    const job = await missed('none');
    await start();
    await waitsFor(after(day));
    expect(await fired(job)).toEqual([]);
    expect(await marks(job)).toEqual({ earliest: new Date(after(-9 * day)), latest: new Date(noon) });
    line.time.moveTo(after(day));
    await firedAre(job, [after(day)]);
  });

  it('is fired only once with last: the newest, at normal priority', async () => {
    const job = await missed('last');
    await start();
    await firedAre(job, [noon]);
    expect(await order(job)).toEqual({ instants: [noon], priorities: new Set(['normal']) });
  });

  it('is fired only as far back as the window reaches', async () => {
    const jobs = await Promise.all(
      ['earliest', 'latest', 'random'].map((policy) =>
        missed(policy, { catchup_window: '3d', start: after(-9 * day + minute) }),
      ),
    );
    const lastInWindow = await missed('last', { catchup_window: '1h' });
    const lastTooOld = await missed('last', { catchup_window: '1h', start: after(-9.5 * day) });
    await start();
    for (const job of jobs)
      await firedAre(
        job,
        [3, 2, 1].map((n) => after(-n * day + minute)),
      );
    await firedAre(lastInWindow, [noon]);
    await waitsFor(after(minute));
    expect(await fired(lastTooOld)).toEqual([]);
  });

  it('counts from the due time: an instant whose offset has not passed is not missed', async () => {
    const job = await missed('earliest', { start: after(-2 * day), offset: '36h' });
    await start();
    await firedAre(job, [after(-2 * day)]);
    line.time.advance(0.5 * day);
    await firedAre(job, [after(-2 * day), after(-day)]);
    const early = await missed('earliest', { start: after(0), offset: '-36h' });
    tell(early);
    await firedAre(early, [after(0), after(day), after(2 * day)]);
  });

  it('goes on after a stop in the middle, and thousands of instants each fire once', async () => {
    const job = await triggered({ start: after(-4_999 * minute), catchup: 'random' });
    await start();
    await until('some have fired', async () => (await fired(job)).length > 0 || undefined);
    await stop();
    const first = (await fired(job)).length;
    expect(first).toBeLessThan(5_000);
    await start();
    await until('all have fired', async () => (await fired(job)).length === 5_000 || undefined);
    expect(await runsOf(line, job.task('a'))).toBe(5_000);
  });

  it('does not delay what is due now', async () => {
    const long = await triggered({ start: after(-20_000 * minute) });
    const live = await triggered({ start: after(minute) });
    await start();
    await until('catching up', async () => (await fired(long)).length > 0 || undefined);
    line.time.moveTo(after(minute));
    await firedAre(live, [after(minute)]);
    expect((await fired(long)).length).toBeLessThan(20_000);
  });

  it('includes what lies before the first firing when start is moved back', async () => {
    const job = await triggered({ start: after(-2 * day), period: '1d' });
    await start();
    await firedAre(job, back(2, 0));
    await waitsFor(after(day));
    await job.change({ triggers: [{ name: 't', start: after(-5 * day), period: '1d' }] });
    tell(job);
    await firedAre(job, back(5, 0));
    await waitsFor(after(day));
    await job.change({ triggers: [{ name: 't', start: after(-7 * day + minute), period: '1d', catchup: 'none' }] });
    tell(job);
    await waitsFor(after(minute));
    expect(await fired(job)).toEqual(back(5, 0));
  });

  it('does not include what lies before a start that was moved forward', async () => {
    const job = await triggered({ start: after(-2 * day), period: '1d' });
    await start();
    await firedAre(job, back(2, 0));
    await job.change({ triggers: [{ name: 't', start: after(2 * day + minute), period: '1d' }] });
    tell(job);
    await waitsFor(after(2 * day + minute));
    line.time.moveTo(after(2 * day + minute));
    await firedAre(job, [...back(2, 0), after(2 * day + minute)]);
  });

  it('ends before `end`', async () => {
    const job = await triggered({ start: after(-5 * day), end: after(-2 * day), period: '1d' });
    await start();
    await firedAre(job, back(5, 3));
    await waitsFor(sentinel);
    expect(await fired(job)).toEqual(back(5, 3));
  });

  it('with none is nothing in a short restart: no instant is dropped (Waterwheel’s bug 16)', async () => {
    const job = await triggered({ start: after(0), period: '10s', catchup: 'none' });
    await start();
    line.time.advance(10_000);
    await until('it runs', async () => (await fired(job)).length > 0 || undefined);
    const before = await fired(job);
    await stop();
    line.time.advance(45_000);
    await start();
    await firedAre(job, [...before, ...[20, 30, 40, 50].map((s) => after(s * 1_000))]);
  });

  it('by a machine that slept is what its policy says, at backfill priority', async () => {
    const all = await triggered({ start: after(day), period: '1d' });
    const none = await triggered({ start: after(day), period: '1d', catchup: 'none' });
    const last = await triggered({ start: after(day), period: '1d', catchup: 'last' });
    await start();
    await waitsFor(after(day));
    line.time.moveTo(after(5.5 * day));
    await firedAre(
      all,
      [1, 2, 3, 4, 5].map((n) => after(n * day)),
    );
    await firedAre(last, [after(5 * day)]);
    await waitsFor(after(6 * day));
    expect(await fired(none)).toEqual([]);
    expect((await claim(line, all.lane)).every((run) => run.priority === 'backfill')).toBe(true);
    line.time.moveTo(after(6 * day));
    await firedAre(none, [after(6 * day)]);
  });
});

describe('two schedulers at once', () => {
  it('do no harm: each instant fires once, each retry is queued once (I1, I5)', async () => {
    const caughtUp = await triggered({ start: after(-1_500 * minute), catchup: 'latest' });
    const live = await triggered({ start: after(minute) });
    const failing = await line.job({ tasks: [{ name: 'a', retry: { max_attempts: 2, delay: '1s' } }] });
    const instants = Array.from({ length: 30 }, (_, i) => after(i * minute));
    await activate(
      line,
      instants.map(() => failing.task('a')),
      instants,
    );
    await finish(line, await claim(line, failing.lane), 'failure');
    await Promise.all([start(), start()]);
    for (let i = 1; i <= 5; i++) {
      line.time.moveTo(after(i * minute));
      await until('live fires', async () => (await fired(live)).length === i || undefined);
    }
    await until('caught up', async () => (await fired(caughtUp)).length === 1_506 || undefined);
    expect(await runsOf(line, caughtUp.task('a'))).toBe(1_506);
    expect(await runsOf(line, live.task('a'))).toBe(5);
    await until('retried', async () => (await runsOf(line, failing.task('a'))) === 60 || undefined);
    expect(ctx.faults).toEqual([]);
  });

  it('lose nothing when the one that noted catch-up first dies before the other has noted more', async () => {
    const job = await triggered({ start: after(-1_000 * minute) });
    const [from, first] = [new Date(after(-1_000 * minute)), new Date(after(-500 * minute))];
    await line.db.exec(sql`
      insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed)
      values (${job.trigger('t')}, ${from}, ${first}, 'earliest', 1, 1)`);
    await start();
    await until('all have fired', async () => (await fired(job)).length === 1_001 || undefined);
  });
});

describe('the other processors', () => {
  it('queue a retry when it is due, and release tokens of an unpaused job', async () => {
    const failing = await line.job({ tasks: [{ name: 'a', retry: { max_attempts: 2, delay: '90s' } }] });
    await activate(line, failing.task('a'), noon);
    await finish(line, await claim(line, failing.lane), 'failure');
    const held = await triggered({ start: after(minute) }, { paused: true });
    await line.db.exec(
      sql`select * from fire_triggers(${[held.trigger('t')]}::uuid[], ${[noon]}::timestamptz[], 'x', 'low', null, ${new Date(noon)})`,
    );
    await start();
    expect(await runsOf(line, held.task('a'))).toBe(0);
    await held.change({ paused: false });
    tell(held);
    await until('released', async () => (await runsOf(line, held.task('a'))) === 1 || undefined);
    line.time.advance(89_000);
    await until('it waits for the rest', () => line.time.isAwaited(after(1.5 * minute)) || undefined);
    expect(await runsOf(line, failing.task('a'))).toBe(1);
    line.time.advance(1_000);
    await until('retried', async () => (await runsOf(line, failing.task('a'))) === 2 || undefined);
  });

  it('take runs back from lost workers, but only while some gateway has served for a lease’s length (I4)', async () => {
    let since: Date | undefined;
    let asked = 0;
    const servingSince = async (): Promise<Date | undefined> => {
      asked++;
      return since;
    };
    ctx = makeContext({ ...line, servingSince });
    const job = await line.job();
    await activate(line, job.task('only'), noon);
    await claim(line, job.lane);
    line.time.advance(31_000);
    await start();
    const free = async () => (await line.db.rows(sql`select 1 from live where worker_id is null`)).length === 1;
    const looks = async (): Promise<void> => {
      const before = asked;
      await until('it has looked', () => asked > before + 1 || undefined);
    };
    await looks();
    expect(await free()).toBe(false);
    since = new Date(line.time.now() - 29_000);
    await looks();
    expect(await free()).toBe(false);
    since = new Date(line.time.now() - 30_000);
    await until('it comes back', async () => (await free()) || undefined);
  });

  it('offer what is ready again and again, lest a wake-up was lost', async () => {
    const job = await line.job();
    let offers = 0;
    ctx.hub.on(ctx.tenant.id, 'ready', () => offers++);
    await start();
    await activate(line, job.task('only'), noon);
    line.time.advance(1_000);
    await until('it is offered', () => offers > 0 || undefined);
  });
});
