/** A whole scheduler: triggers, changes, two schedulers at once, and the other processors. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { activate, claim, finish, runsOf } from '../../test/harness/pipeline.ts';
import { after, minute, noon, Schedule, sentinel } from '../../test/harness/scheduling.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { triggersFired } from './telemetry.ts';

let all: Schedule;
beforeEach(async () => {
  all = await Schedule.make();
});
afterEach(() => all.close());

describe('trigger', () => {
  it('a trigger fires on time, not before, and continues', async () => {
    const job = await all.triggered({ start: after(minute) });
    await all.start();
    all.line.time.moveTo(after(minute - 1));
    await all.waitsFor(after(minute));
    expect(await all.fired(job)).toEqual([]);
    all.line.time.advance(1);
    await all.firedAre(job, [after(minute)]);
    all.line.time.advance(minute);
    await all.firedAre(job, [after(minute), after(2 * minute)]);
    expect((await claim(all.line, job.lane)).map((run) => run.priority)).toEqual(['normal', 'normal']);
  });

  it('a trigger that is behind fires all due instants in one commit', async () => {
    const job = await all.triggered({ start: after(minute), period: '1s' });
    const commits: number[] = [];
    triggersFired.on(all.ctx.telemetry, ({ triggers }) => commits.push(triggers));
    await all.start();
    all.line.time.moveTo(after(minute - 1));
    await all.waitsFor(after(minute));
    all.line.time.moveTo(after(minute + 29_000));
    await all.firedAre(
      job,
      Array.from({ length: 30 }, (_, i) => after(minute + i * 1_000)),
    );
    expect(commits).toEqual([30]);
    all.line.time.advance(1_000);
    await until('the next instant fires', () => commits.length === 2 || undefined);
    expect(commits).toEqual([30, 1]);
  });

  it('the firing statement is planned before the first trigger is due, so that it is not late', async () => {
    const { pool, time } = all.line;
    const isPlanned = async (): Promise<boolean> => {
      const look = (): Promise<{ rowCount: number | null }> =>
        pool.query("select from pg_prepared_statements where statement like '%fire_triggers(%'");
      const found = await Promise.all(Array.from({ length: Math.max(1, pool.totalCount) }, look));
      return found.some(({ rowCount }) => rowCount === 1);
    };
    const job = await all.triggered({ start: after(minute) });
    await all.start();
    expect(await isPlanned()).toBe(false);
    time.moveTo(after(minute - 1_000));
    await until('it is planned', async () => (await isPlanned()) || undefined);
    expect(await all.fired(job)).toEqual([]);
  });

  it('a trigger fires by its offset before or after its instant', async () => {
    const late = await all.triggered({ start: after(minute), offset: '30s' });
    const early = await all.triggered({ start: after(minute), offset: '-30s' });
    await all.start();
    all.line.time.moveTo(after(0.5 * minute));
    await all.firedAre(early, [after(minute)]);
    all.line.time.moveTo(after(1.5 * minute - 1));
    await all.firedAre(early, [after(minute), after(2 * minute)].slice(0, 1));
    expect(await all.fired(late)).toEqual([]);
    all.line.time.advance(1);
    await all.firedAre(late, [after(minute)]);
  });

  it('a cron trigger fires at its times, `start` included, `end` excluded', async () => {
    const job = await all.triggered({
      period: undefined,
      cron: '*/2 * * * *',
      start: after(minute),
      end: after(6 * minute),
    });
    await all.start();
    for (let i = 1; i <= 10; i++) {
      all.line.time.moveTo(after(i * minute));
      await until('the turn is over', () => all.line.time.sleeping > 0 || undefined);
    }
    await all.firedAre(job, [after(minute), after(2 * minute), after(4 * minute)]);
  });

  it('a cron trigger without further years ends without a fault, and others continue (Waterwheel’s bug 18)', async () => {
    const ended = await all.triggered({
      period: undefined,
      cron: '0 0 0 1 1 * 2027',
      start: '2027-01-01T00:00:00Z',
      catchup: 'none',
    });
    const other = await all.triggered({ start: '2027-01-01T00:00:00Z', period: '1h' });
    await all.start();
    all.line.time.moveTo('2027-01-01T00:00:00Z');
    await all.firedAre(ended, ['2027-01-01T00:00:00.000Z']);
    await all.waitsFor('2027-01-01T01:00:00.000Z');
    all.line.time.moveTo('2027-01-01T01:00:00Z');
    await all.firedAre(other, ['2027-01-01T00:00:00.000Z', '2027-01-01T01:00:00.000Z']);
    expect(await all.fired(ended)).toHaveLength(1);
    expect(all.ctx.faults).toEqual([]);
  });

  it('a trigger with an invalid schedule does not keep others from firing', async () => {
    const bad = await all.triggered({ start: after(minute) });
    const good = await all.triggered({ start: after(minute) });
    await all.line.db.exec(sql`update trigger set period_ms = null, cron = 'nonsense' where id = ${bad.trigger('t')}`);
    await all.start();
    all.line.time.moveTo(after(minute));
    await all.firedAre(good, [after(minute)]);
    expect(all.ctx.faults).toHaveLength(1);
  });

  it('the status has the number of queued triggers and the next one', async () => {
    const job = await all.triggered({ start: after(minute) });
    await all.triggered({ start: after(2 * minute) });
    await all.start();
    await until('its status', () => all.ctx.statuses.at(-1)?.queuedTriggers === 3 || undefined);
    expect(all.ctx.statuses.at(-1)?.nextTriggerId).toBe(job.trigger('t'));
  });
});

describe('change of a job', () => {
  it('a new job, another schedule, a pause, an unpause and a deletion take effect', async () => {
    await all.start();
    const job = await all.triggered({ start: after(minute), catchup: 'none' });
    all.tell(job);
    await all.waitsFor(after(minute));
    all.line.time.moveTo(after(minute));
    await all.firedAre(job, [after(minute)]);

    const triggers = [{ name: 't', start: after(1.5 * minute), period: '2m', catchup: 'none' }];
    await job.change({ triggers });
    all.tell(job);
    await all.waitsFor(after(1.5 * minute));
    all.line.time.moveTo(after(1.5 * minute));
    await all.firedAre(job, [after(minute), after(1.5 * minute)]);

    await job.change({ triggers, paused: true });
    all.tell(job);
    await all.waitsFor(sentinel);
    all.line.time.moveTo(after(10.75 * minute));
    await job.change({ triggers, paused: false });
    all.tell(job);
    await all.waitsFor(after(11.5 * minute));
    all.line.time.moveTo(after(11.5 * minute));
    const seen = [after(minute), after(1.5 * minute), after(11.5 * minute)];
    await all.firedAre(job, seen);

    await all.line.db.exec(sql`select * from delete_jobs(${[job.id]}::uuid[], 'test', ${new Date()})`);
    const about = sql`${[job.id]}::uuid[], 'test', '{null}', ${new Date()}, '{"{}"}'`;
    await all.line.db.exec(sql`select append_events(2, '{job.deleted}', ${about})`);
    all.tell(job);
    await all.waitsFor(sentinel);
    all.line.time.moveTo(after(20 * minute));
    await all.waitsFor(sentinel);
    expect(await all.fired(job)).toEqual(seen);
  });

  it('a change that the database refuses at first takes effect later, with the instants missed meanwhile', async () => {
    await all.start();
    await all.line.db.exec(sql`
      create function refuse() returns trigger language plpgsql as 'begin raise exception ''not now''; end'`);
    await all.line.db.exec(
      sql`create trigger refuse before insert on catchup for each statement execute function refuse()`,
    );
    const job = await all.triggered({ start: after(-3 * minute), period: '1m' });
    all.tell(job);
    await until('it has failed', () => all.ctx.faults.length > 0 || undefined);
    expect(await all.marks(job)).toEqual({ earliest: null, latest: null });
    await all.line.db.exec(sql`drop trigger refuse on catchup`);
    // retried after a pause
    all.line.time.advance(5_000);
    await all.firedAre(job, [after(-3 * minute), after(-2 * minute), after(-minute), after(0)]);
    all.line.time.advance(minute);
    await all.firedAre(job, [after(-3 * minute), after(-2 * minute), after(-minute), after(0), after(minute)]);
  });

  it('pausing stops a catch-up, and unpausing continues it', async () => {
    const triggers = [{ name: 't', start: after(-4_000 * minute), period: '1m' }];
    const job = await all.triggered(triggers[0] ?? {});
    const letGo = await all.brakeCatchup();
    await all.start();
    await all.waitForSomeFiring(job);
    await job.change({ triggers, paused: true });
    const first = (await all.fired(job)).length;
    const [{ pieces } = { pieces: 0 }] = await all.line.db.rows<{ pieces: number }>(sql`select pieces from catchup`);
    expect(pieces).toBeGreaterThan(1);
    all.tell(job);
    await letGo();
    // a turn considers all catch-ups: when the other one is done, this one was skipped
    const other = await all.triggered({ start: after(-3 * minute) });
    all.tell(other);
    await all.waitForFiringCount(other, 4);
    expect((await all.fired(job)).length).toBe(first);
    await job.change({ triggers, paused: false });
    all.tell(job);
    await all.waitForFiringCount(job, 4_001);
  });
});

it('a scheduler that is stopped while it fires does not wait for the next instant', async () => {
  const job = await all.triggered({ start: after(minute) });
  for (let n = 1; n <= 10; n++) {
    await all.start();
    all.line.time.moveTo(after(n * minute));
    await all.stop();
  }
  await all.start();
  await all.waitForFiringCount(job, 10);
});

describe('two schedulers at once', () => {
  it('two schedulers fire each instant once and queue each retry once (I1, I5)', async () => {
    const caughtUp = await all.triggered({ start: after(-1_500 * minute), catchup: 'latest' });
    const live = await all.triggered({ start: after(minute) });
    const failing = await all.line.job({ tasks: [{ name: 'a', retry: { max_attempts: 2, delay: '1s' } }] });
    const instants = Array.from({ length: 30 }, (_, i) => after(i * minute));
    await activate(
      all.line,
      instants.map(() => failing.task('a')),
      instants,
    );
    await finish(all.line, await claim(all.line, failing.lane), 'failure');
    await Promise.all([all.start(), all.start()]);
    for (let i = 1; i <= 5; i++) {
      all.line.time.moveTo(after(i * minute));
      await all.waitForFiringCount(live, i);
    }
    await all.waitForFiringCount(caughtUp, 1_506);
    expect(await runsOf(all.line, caughtUp.task('a'))).toBe(1_506);
    expect(await runsOf(all.line, live.task('a'))).toBe(5);
    await until('retried', async () => (await runsOf(all.line, failing.task('a'))) === 60 || undefined);
    expect(all.ctx.faults).toEqual([]);
  });

  it('a catch-up row of a dead scheduler is extended by the next one, and no instant is lost', async () => {
    const job = await all.triggered({ start: after(-1_000 * minute) });
    const [from, first] = [new Date(after(-1_000 * minute)), new Date(after(-500 * minute))];
    await all.line.db.exec(sql`
      insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed)
      values (${job.trigger('t')}, ${from}, ${first}, 'earliest', 1, 1)`);
    await all.start();
    await all.waitForFiringCount(job, 1_001);
  });
});

describe('other processors', () => {
  it('retries are queued when they are due, and tokens of an unpaused job are released', async () => {
    const failing = await all.line.job({ tasks: [{ name: 'a', retry: { max_attempts: 2, delay: '90300ms' } }] });
    await activate(all.line, failing.task('a'), noon);
    await finish(all.line, await claim(all.line, failing.lane), 'failure');
    const held = await all.triggered({ start: after(minute) }, { paused: true });
    await all.line.db.exec(
      sql`select * from fire_triggers(${[held.trigger('t')]}::uuid[], ${[noon]}::timestamptz[], 'x', 'low', null, ${new Date(noon)})`,
    );
    await all.start();
    expect(await runsOf(all.line, held.task('a'))).toBe(0);
    await held.change({ paused: false });
    all.tell(held);
    await until('released', async () => (await runsOf(all.line, held.task('a'))) === 1 || undefined);
    all.line.time.advance(89_000);
    // no sweep waits for this moment, only the retry
    await until('it waits for the rest', () => all.line.time.isAwaited(after(90_300)) || undefined);
    expect(await runsOf(all.line, failing.task('a'))).toBe(1);
    all.line.time.advance(1_300);
    await until('retried', async () => (await runsOf(all.line, failing.task('a'))) === 2 || undefined);
  });

  it('runs of lost workers are taken back only once a gateway has served for the length of a lease (I4)', async () => {
    let since: Date | undefined;
    let asked = 0;
    const servingSince = async (): Promise<Date | undefined> => {
      asked++;
      return since;
    };
    all.ctx = makeContext({ ...all.line, servingSince });
    const job = await all.line.job();
    await activate(all.line, job.task('only'), noon);
    await claim(all.line, job.lane);
    all.line.time.advance(31_000);
    await all.start();
    const free = async () => (await all.line.db.rows(sql`select 1 from live where worker_id is null`)).length === 1;
    const sweeps = async (): Promise<void> => {
      const before = asked;
      await until('it has swept', () => asked > before + 1 || undefined);
    };
    await sweeps();
    expect(await free()).toBe(false);
    since = new Date(all.line.time.now() - 29_000);
    await sweeps();
    expect(await free()).toBe(false);
    since = new Date(all.line.time.now() - 30_000);
    await until('it comes back', async () => (await free()) || undefined);
  });

  it('ready runs are offered again every second, in case a wake-up was lost', async () => {
    const job = await all.line.job();
    let offers = 0;
    all.ctx.hub.on('ready', all.ctx.tenant.id, () => offers++);
    await all.start();
    await activate(all.line, job.task('only'), noon);
    all.line.time.advance(1_000);
    await until('it is offered', () => offers > 0 || undefined);
  });

  it('a scheduler records the lag of subscribers', async () => {
    const { db, time } = all.line;
    const subscriber = newId();
    await db.exec(sql`
      insert into subscriber (id, name, identity, kind, created_at)
      values (${subscriber}, 'tests', ${subscriber}, 'pull', ${noon})`);
    await db.exec(sql`
      insert into reader (subscriber_id, strand, pos, queued, oldest_at)
      values (${subscriber}, 0, 0, 3, ${new Date(time.now() - 5_000)})`);
    await all.start();
    const [row] = await until('a sample is taken', async () => {
      const rows = await db.rows<{ queued: number; oldest_ms: number }>(sql`
        select queued, oldest_ms from subscriber_activity`);
      return rows.length > 0 ? rows : undefined;
    });
    expect(row).toEqual({ queued: 3, oldest_ms: 5_000 });
  });
});
