/** Edits of a trigger: the table of docs/jobs.md, line by line. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { makeDam, type TestJob } from '../../test/harness/pipeline.ts';
import { after, day, minute, noon, Schedule, sentinel } from '../../test/harness/scheduling.ts';
import { until } from '../../test/harness/until.ts';

let all: Schedule;

const back = (from: number, to: number): string[] =>
  Array.from({ length: from - to + 1 }, (_, i) => after((i - from) * day));

async function edit(job: TestJob, trigger: object): Promise<void> {
  await job.change({ triggers: [{ name: 't', ...trigger }] });
  all.tell(job);
}

describe('edit of a trigger that has fired to the present', () => {
  beforeEach(async () => {
    all = await Schedule.make();
  });
  afterEach(() => all.close());

  /** Daily for three days, the last of them now. */
  const daily = { start: after(-2 * day), period: '1d' };
  const settled = async (): Promise<TestJob> => {
    const job = await all.triggered(daily);
    await all.start();
    await all.firedAre(job, back(2, 0));
    await all.waitsFor(after(day));
    return job;
  };

  it('a trigger with a later start waits for it', async () => {
    const job = await settled();
    await edit(job, { ...daily, start: after(3 * day + minute) });
    await all.waitsFor(after(3 * day + minute));
    all.line.time.moveTo(after(3 * day + minute));
    await all.firedAre(job, [...back(2, 0), after(3 * day + minute)]);
  });

  it('an earlier start makes instants before the first firing due, by the policy', async () => {
    const job = await settled();
    await edit(job, { ...daily, start: after(-5 * day) });
    await all.firedAre(job, back(5, 0));
    await edit(job, { ...daily, start: after(-8 * day), catchup_window: '7d' });
    await all.firedAre(job, back(7, 0));
  });

  it.each(['none', 'last'])(
    'with `%s`, instants before the first firing are settled for good, even if the policy changes later',
    async (catchup) => {
      const job = await settled();
      await edit(job, { ...daily, start: after(-5 * day), catchup });
      await until('the edit has taken effect', async () => {
        const { earliest } = await all.marks(job);
        return earliest?.getTime() === Date.parse(after(-5 * day)) || undefined;
      });
      await all.waitsFor(after(day));
      await edit(job, { ...daily, start: after(-5 * day), catchup: 'earliest' });
      await all.waitsFor(after(day));
      expect(await all.fired(job)).toEqual(back(2, 0));
    },
  );

  it('an end before the next instant ends the trigger', async () => {
    const job = await settled();
    await edit(job, { ...daily, end: after(day) });
    await all.waitsFor(sentinel);
    all.line.time.moveTo(after(5 * day));
    await all.waitsFor(sentinel);
    expect(await all.fired(job)).toEqual(back(2, 0));
  });

  it('a later end makes the trigger continue, and instants missed since are due by the policy', async () => {
    const job = await all.triggered({ ...daily, end: after(day) });
    await all.start();
    await all.firedAre(job, back(2, 0));
    all.line.time.moveTo(after(3.5 * day));
    await all.waitsFor(sentinel);
    await edit(job, { ...daily, end: after(5 * day) });
    await all.firedAre(job, [...back(2, 0), after(day), after(2 * day), after(3 * day)]);
    await all.waitsFor(after(4 * day));
  });

  it('a new period counts from start, and continues after the latest instant', async () => {
    const job = await settled();
    await edit(job, { ...daily, period: '36h' });
    // start + 36 h and start + 48 h lie behind; start + 72 h is ahead
    await all.waitsFor(after(day));
    await edit(job, { ...daily, period: '20h' });
    await all.waitsFor(after(0.5 * day));
    all.line.time.moveTo(after(0.5 * day));
    await all.firedAre(job, [...back(2, 0), after(0.5 * day)]);
  });

  it('a shorter period makes its instants since the latest instant due, by the policy', async () => {
    const job = await settled();
    all.line.time.moveTo(after(0.5 * day + 2 * minute));
    await edit(job, { ...daily, period: '6h' });
    await all.firedAre(job, [...back(2, 0), after(0.25 * day), after(0.5 * day)]);
    await edit(job, { ...daily, period: '1h', catchup: 'none' });
    all.line.time.moveTo(after(0.5 * day + 90 * minute));
    await all.waitsFor(after(0.5 * day + 120 * minute));
    expect(await all.fired(job)).toHaveLength(5);
  });

  it('a new cron expression continues with its first time after the latest instant', async () => {
    const job = await settled();
    await edit(job, { start: daily.start, cron: '30 * * * *' });
    await all.waitsFor(after(30 * minute));
    await edit(job, { start: daily.start, cron: '0 7 * * *', timezone: 'Europe/Berlin' });
    await all.waitsFor(after(300 * minute));
  });

  it('a new time zone applies its own local times, from the latest instant on', async () => {
    const cron = { start: daily.start, cron: '0 0 * * *' };
    const job = await all.triggered({ ...cron, period: undefined });
    await all.start();
    await all.firedAre(job, back(2, 0));
    // midnight comes four hours later there: this day has a second one
    await edit(job, { ...cron, timezone: 'America/New_York' });
    await all.waitsFor(after(240 * minute));
    // a day of the new zone is a day of 24 hours all the same
    await edit(job, { ...daily, timezone: 'America/New_York' });
    await all.waitsFor(after(day));
  });

  it('a new offset applies to instants after the latest one; instants that it makes due are missed', async () => {
    const job = await settled();
    await edit(job, { ...daily, offset: '6h' });
    await all.waitsFor(after(1.25 * day));
    await edit(job, { ...daily, offset: '-60h' });
    await all.firedAre(job, [...back(2, 0), after(day), after(2 * day)]);
    await all.waitsFor(after(0.5 * day));
  });

  it('a removed trigger ends, and continues from the latest instant when it is added again', async () => {
    const job = await settled();
    await job.change({ triggers: [], tasks: [{ name: 'a' }] });
    all.tell(job);
    await all.waitsFor(sentinel);
    all.line.time.moveTo(after(2.5 * day));
    await edit(job, daily);
    await all.firedAre(job, [...back(2, 0), after(day), after(2 * day)]);
  });
});

describe('edit of a trigger with a pending catch-up', () => {
  /** Daily for nine days, the last of them now. */
  const daily = { start: after(-8 * day), period: '1d' };

  let dam: Awaited<ReturnType<typeof makeDam>>;
  beforeAll(async () => {
    all = await Schedule.make();
    // no leases are swept here
    all.ctx = makeContext({ ...all.line, servingSince: async () => undefined });
    dam = await makeDam(all.line);
    await all.start();
  });
  afterAll(() => all.close());

  /** A job whose catch-up is recorded but not begun, because too many of its runs wait. */
  const noted = async (): Promise<TestJob> => {
    const paused = await all.triggered(daily, { paused: true });
    await dam.hold(paused.trigger('t'));
    const job = await paused.change({ paused: false });
    all.tell(job);
    await all.waitUntilNoted(job);
    return job;
  };
  /** Lets the catch-up continue until it is complete. Returns the fired instants. */
  const caughtUp = async (job: TestJob): Promise<string[]> => {
    await dam.letGo(job.trigger('t'));
    await all.waitUntilCaughtUp(job);
    return all.fired(job);
  };

  it('a pending catch-up does not fire instants from an earlier end on', async () => {
    const job = await noted();
    await edit(job, { ...daily, end: after(-4 * day) });
    expect(await caughtUp(job)).toEqual(back(8, 5));
  });

  it('a pending catch-up does not fire instants before a later start', async () => {
    const job = await noted();
    await edit(job, { ...daily, start: after(-3 * day) });
    expect(await caughtUp(job)).toEqual(back(3, 0));
    const other = await noted();
    await edit(other, { ...daily, start: after(3 * day) });
    expect(await caughtUp(other)).toEqual([]);
  });

  it('a pending catch-up follows a new period, cron expression or time zone', async () => {
    const job = await noted();
    await edit(job, { ...daily, period: '2d' });
    expect(await caughtUp(job)).toEqual([8, 6, 4, 2, 0].map((n) => after(-n * day)));
    const other = await noted();
    await edit(other, { start: daily.start, cron: '0 0 * * mon', timezone: 'UTC' });
    expect(await caughtUp(other)).toEqual([after(-8 * day), after(-7 * day), noon]);
  });

  it('a pending catch-up fires at once whatever the new offset is, because its instants were due', async () => {
    const job = await noted();
    await edit(job, { ...daily, offset: '2d' });
    expect(await caughtUp(job)).toEqual(back(8, 0));
  });

  it('a pending catch-up is dropped with `none`, and reduced to the newest instant with `last`', async () => {
    const job = await noted();
    await edit(job, { ...daily, catchup: 'none' });
    expect(await caughtUp(job)).toEqual([]);
    const other = await noted();
    await edit(other, { ...daily, catchup: 'last' });
    expect(await caughtUp(other)).toEqual([noon]);
  });

  it('a pending catch-up fires only as far back as a new window reaches', async () => {
    const job = await noted();
    await edit(job, { ...daily, catchup_window: '3d 1h' });
    expect(await caughtUp(job)).toEqual(back(3, 0));
  });

  it('a pending catch-up is dropped with its trigger', async () => {
    const job = await noted();
    await job.change({ triggers: [], tasks: [{ name: 'a' }] });
    all.tell(job);
    expect(await caughtUp(job)).toEqual([]);
  });

  it('a pending catch-up follows an edit that was made while no scheduler ran', async () => {
    const job = await noted();
    await all.stop();
    await job.change({ triggers: [{ name: 't', ...daily, end: after(-4 * day) }] });
    await all.start();
    expect(await caughtUp(job)).toEqual(back(8, 5));
  });
});
