/** Missed instants, with a whole scheduler: policies, windows, moved starts, restarts, sleep. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeContext } from '../../../test/harness/engine-context.ts';
import { claim, runsOf, type TestJob } from '../../../test/harness/pipeline.ts';
import { after, day, minute, noon, Schedule, sentinel } from '../../../test/harness/scheduling.ts';
import { until } from '../../../test/harness/until.ts';
import { Scheduling } from '../scheduling.ts';
import { TriggerProcessor } from '../triggers.ts';

let all: Schedule;
beforeEach(async () => {
  all = await Schedule.make();
});
afterEach(() => all.close());

describe('missed instants', () => {
  const makeMissed = (policy: string, more: object = {}) =>
    all.triggered({ start: after(-9 * day), period: '1d', catchup: policy, ...more });
  const listDays = (from: number, to: number): string[] =>
    Array.from({ length: from - to + 1 }, (_, i) => after((i - from) * day));
  /** Instants in the order in which their runs are claimed, with the priorities. */
  async function claimInOrder(job: TestJob): Promise<{ instants: string[]; priorities: Set<string> }> {
    const instants: string[] = [];
    const priorities = new Set<string>();
    for (;;) {
      const [run] = await claim(all.line, job.lane, { places: 1 });
      if (run === undefined) return { instants, priorities };
      instants.push(run.instant.toISOString());
      priorities.add(run.priority);
    }
  }

  it('missed instants fire from the earliest on, at backfill priority', async () => {
    const job = await makeMissed('earliest');
    await all.start();
    await all.firedAre(job, listDays(9, 0));
    await all.waitsFor(after(day));
    expect(await claimInOrder(job)).toEqual({ instants: listDays(9, 0), priorities: new Set(['backfill']) });
    expect(await all.marks(job)).toEqual({ earliest: new Date(after(-9 * day)), latest: new Date(noon) });
  });

  it('with `latest`, missed instants fire from the latest back', async () => {
    const job = await makeMissed('latest');
    await all.start();
    await all.firedAre(job, listDays(9, 0));
    await all.waitsFor(after(day));
    expect((await claimInOrder(job)).instants).toEqual(listDays(9, 0).toReversed());
  });

  it('with `random`, missed instants fire in random order', async () => {
    const job = await makeMissed('random', { start: after(-40 * day) });
    await all.start();
    await all.firedAre(job, listDays(40, 0));
    await all.waitsFor(after(day));
    const { instants } = await claimInOrder(job);
    expect(instants).not.toEqual(listDays(40, 0));
    expect(instants).not.toEqual(listDays(40, 0).toReversed());
    expect(instants.toSorted()).toEqual(listDays(40, 0));
  });

  it('with `none`, missed instants do not fire, and later ones do', async () => {
    const job = await makeMissed('none');
    await all.start();
    await all.waitsFor(after(day));
    expect(await all.fired(job)).toEqual([]);
    expect(await all.marks(job)).toEqual({ earliest: new Date(after(-9 * day)), latest: new Date(noon) });
    all.line.time.moveTo(after(day));
    await all.firedAre(job, [after(day)]);
  });

  it('with `last`, only the newest missed instant fires, at normal priority', async () => {
    const job = await makeMissed('last');
    await all.start();
    await all.firedAre(job, [noon]);
    expect(await claimInOrder(job)).toEqual({ instants: [noon], priorities: new Set(['normal']) });
  });

  it('missed instants fire only as far back as the window reaches', async () => {
    const jobs = await Promise.all(
      ['earliest', 'latest', 'random'].map((policy) =>
        makeMissed(policy, { catchup_window: '3d', start: after(-9 * day + minute) }),
      ),
    );
    const lastInWindow = await makeMissed('last', { catchup_window: '1h' });
    const lastTooOld = await makeMissed('last', { catchup_window: '1h', start: after(-9.5 * day) });
    await all.start();
    for (const job of jobs)
      await all.firedAre(
        job,
        [3, 2, 1].map((n) => after(-n * day + minute)),
      );
    await all.firedAre(lastInWindow, [noon]);
    await all.waitsFor(after(minute));
    expect(await all.fired(lastTooOld)).toEqual([]);
  });

  it('an instant whose offset has not passed is not missed', async () => {
    const job = await makeMissed('earliest', { start: after(-2 * day), offset: '36h' });
    await all.start();
    await all.firedAre(job, [after(-2 * day)]);
    all.line.time.advance(0.5 * day);
    await all.firedAre(job, [after(-2 * day), after(-day)]);
    const early = await makeMissed('earliest', { start: after(0), offset: '-36h' });
    all.tell(early);
    await all.firedAre(early, [after(0), after(day), after(2 * day)]);
  });

  it('a catch-up resumes after a stop in the middle, and each of thousands of instants fires once', async () => {
    // no leases are swept here
    all.ctx = makeContext({ ...all.line, servingSince: async () => undefined });
    // more than may fire while no worker claims their runs, so that the catch-up cannot be over before the stop
    const job = await all.triggered({ start: after(-6_499 * minute), end: after(minute), catchup: 'random' });
    await all.start();
    await all.waitForSomeFiring(job);
    await all.stop();
    expect((await all.fired(job)).length).toBeLessThan(6_500);
    await all.start();
    await until('all have fired', async () => {
      await claim(all.line, job.lane, { places: 1_000 });
      all.line.time.advance(100);
      return (await all.fired(job)).length === 6_500 || undefined;
    });
    expect(await runsOf(all.line, job.task('a'))).toBe(6_500);
  });

  it('the trigger processor can stop while it computes missed instants', async () => {
    await makeMissed('none');
    const { service } = new TriggerProcessor(new Scheduling(all.ctx));
    await service.start();
    await service.stop();
    await service.start();
    await all.waitsFor(after(day));
    await service.stop();
  });

  it('missed instants do not delay instants that are due now', async () => {
    const long = await all.triggered({ start: after(-20_000 * minute) });
    const live = await all.triggered({ start: after(minute) });
    await all.start();
    await all.waitForSomeFiring(long);
    all.line.time.moveTo(after(minute));
    await all.firedAre(live, [after(minute)]);
    expect((await all.fired(long)).length).toBeLessThan(20_000);
  });

  it('instants before the first firing are missed if the start is moved back', async () => {
    const job = await all.triggered({ start: after(-2 * day), period: '1d' });
    await all.start();
    await all.firedAre(job, listDays(2, 0));
    await all.waitsFor(after(day));
    await job.change({ triggers: [{ name: 't', start: after(-5 * day), period: '1d' }] });
    all.tell(job);
    await all.firedAre(job, listDays(5, 0));
    await all.waitsFor(after(day));
    await job.change({ triggers: [{ name: 't', start: after(-7 * day + minute), period: '1d', catchup: 'none' }] });
    all.tell(job);
    await all.waitsFor(after(minute));
    expect(await all.fired(job)).toEqual(listDays(5, 0));
  });

  it('instants before a start that was moved forward do not fire', async () => {
    const job = await all.triggered({ start: after(-2 * day), period: '1d' });
    await all.start();
    await all.firedAre(job, listDays(2, 0));
    await job.change({ triggers: [{ name: 't', start: after(2 * day + minute), period: '1d' }] });
    all.tell(job);
    await all.waitsFor(after(2 * day + minute));
    all.line.time.moveTo(after(2 * day + minute));
    await all.firedAre(job, [...listDays(2, 0), after(2 * day + minute)]);
  });

  it('missed instants end before `end`', async () => {
    const job = await all.triggered({ start: after(-5 * day), end: after(-2 * day), period: '1d' });
    await all.start();
    await all.firedAre(job, listDays(5, 3));
    await all.waitsFor(sentinel);
    expect(await all.fired(job)).toEqual(listDays(5, 3));
  });

  it('with `none`, a short restart drops no instant (Waterwheel’s bug 16)', async () => {
    const job = await all.triggered({ start: after(0), period: '10s', catchup: 'none' });
    await all.start();
    all.line.time.advance(10_000);
    await all.waitForSomeFiring(job);
    const before = await all.fired(job);
    await all.stop();
    all.line.time.advance(45_000);
    await all.start();
    await all.firedAre(job, [...before, ...[20, 30, 40, 50].map((s) => after(s * 1_000))]);
  });

  it('with `none`, the very first instant fires even if the scheduler restarts just then', async () => {
    const job = await all.triggered({ start: after(minute), period: '1h', catchup: 'none' });
    await all.start();
    await all.waitsFor(after(minute));
    await all.stop();
    all.line.time.advance(minute + 30_000);
    await all.start();
    await all.firedAre(job, [after(minute)]);
    const past = await all.triggered({ start: after(minute), period: '1h', catchup: 'none' });
    all.tell(past);
    await all.waitsFor(after(61 * minute));
    expect(await all.fired(past)).toEqual([]);
  });

  it.each(['earliest', 'latest', 'random', 'last'])(
    'with `%s`, an instant during a short restart fires late, at its own priority',
    async (catchup) => {
      const job = await all.triggered({ start: after(0), period: '10s', catchup });
      await all.start();
      all.line.time.advance(10_000);
      await all.waitsFor(after(20_000));
      await all.stop();
      const before = await all.fired(job);
      all.line.time.advance(25_000);
      await all.start();
      await all.firedAre(job, [...before, after(20_000), after(30_000)]);
      const priorities = (await claim(all.line, job.lane)).map((run) => [run.instant.toISOString(), run.priority]);
      expect(priorities).toEqual(expect.arrayContaining([20_000, 30_000].map((ms) => [after(ms), 'normal'])));
    },
  );

  it('an instant whose positive offset has not passed is not missed after a restart (Waterwheel’s bug 16)', async () => {
    const job = await all.triggered({ start: after(-day), period: '1d', offset: '6h' });
    await all.start();
    await all.firedAre(job, [after(-day)]);
    await all.stop();
    all.line.time.moveTo(after(0.2 * day));
    await all.start();
    await all.waitsFor(after(0.25 * day));
    expect(await all.fired(job)).toEqual([after(-day)]);
    all.line.time.moveTo(after(0.25 * day));
    await all.firedAre(job, [after(-day), after(0)]);
  });

  it('after the machine slept, missed instants fire by their policy, at backfill priority', async () => {
    const every = await all.triggered({ start: after(day), period: '1d' });
    const none = await all.triggered({ start: after(day), period: '1d', catchup: 'none' });
    const last = await all.triggered({ start: after(day), period: '1d', catchup: 'last' });
    await all.start();
    await all.waitsFor(after(day));
    all.line.time.moveTo(after(5.5 * day));
    await all.firedAre(
      every,
      [1, 2, 3, 4, 5].map((n) => after(n * day)),
    );
    await all.firedAre(last, [after(5 * day)]);
    await all.waitsFor(after(6 * day));
    expect(await all.fired(none)).toEqual([]);
    expect((await claim(all.line, every.lane)).every((run) => run.priority === 'backfill')).toBe(true);
    all.line.time.moveTo(after(6 * day));
    await all.firedAre(none, [after(6 * day)]);
  });
});
