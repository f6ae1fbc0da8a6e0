import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant } from '../../../test/harness/fleet.ts';
import { cancel, claim } from '../../../test/harness/pipeline.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { SignalDesk } from './signal-desk.ts';

let fleet: Fleet;
let tenant: TestTenant;
beforeAll(async () => {
  fleet = await makeFleet(['a']);
  const [only] = fleet.tenants;
  if (only === undefined) throw new Error('no tenant');
  tenant = only;
});
afterAll(() => fleet.close());

const invalidation = () => ({ tenant: newId(), kind: 'project' as const, id: newId() });

describe('SignalDesk', () => {
  it('a poll ends when a run of its worker must be killed, and the kill is sent once', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const [worker, other] = [newId(), newId()];
    await tenant.ready(1);
    const stage = { db: await tenant.db(), time: fleet.time };
    const [run] = await claim(stage, 'none:default', { worker });
    const [mine, theirs] = [desk.poll(worker), desk.poll(other)];
    await desk.lookAt(tenant.row.id);
    expect(mine.signal.aborted).toBe(false);
    await cancel(stage, run?.id ?? '');
    await desk.lookAt(tenant.row.id);
    expect([mine.signal.aborted, theirs.signal.aborted]).toEqual([true, false]);
    expect(desk.take(worker, {}).cancel).toEqual([{ tenant: tenant.row.id, run: run?.id, lease: 1 }]);
    expect(desk.take(worker, {}).cancel).toEqual([]);
    expect(desk.take(other, {}).cancel).toEqual([]);
  });

  it('several cancellations at once cause one query, and are sent together', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const worker = newId();
    await tenant.ready(3);
    const stage = { db: await tenant.db(), time: fleet.time };
    const runs = await claim(stage, 'none:default', { worker, places: 3 });
    for (const run of runs) await cancel(stage, run.id);
    const poll = desk.poll(worker);
    let ends = 0;
    poll.signal.addEventListener('abort', () => ends++);
    fleet.asked.length = 0;
    await Promise.all(Array.from({ length: 1_000 }, () => desk.lookAt(tenant.row.id)));
    expect(fleet.asked).toEqual(['cancellations a', 'cancellations a']);
    const cancelled = desk.take(worker, {}).cancel.map(({ run }) => run);
    expect([new Set(cancelled), ends]).toEqual([new Set(runs.map(({ id }) => id)), 1]);
    await desk.lookAt(tenant.row.id);
    expect(fleet.asked).toHaveLength(3);
  });

  it('an invalidation ends no poll, and is sent to each worker once', () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const { epoch, newest } = desk.take('w1', {});
    expect(newest).toBe(0);
    const seen = (number: number): Record<string, number> => ({ [epoch]: number, 'of another gateway': 77 });
    const [one, two] = [invalidation(), invalidation()];
    const [first, second] = [desk.poll('w1'), desk.poll('w2')];
    desk.invalidate(one);
    desk.invalidate(two);
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, false]);
    expect(desk.take('w1', seen(0))).toEqual({ cancel: [], invalidate: [one, two], epoch, newest: 2 });
    expect(desk.take('w1', seen(2))).toEqual({ cancel: [], invalidate: [], epoch, newest: 2 });
    expect(desk.take('w2', seen(1))).toMatchObject({ invalidate: [two] });
    expect(desk.poll('w3').signal.aborted).toBe(false);
  });

  it('a worker that does not know the epoch gets only the number to count from', () => {
    const [gone, desk] = [new SignalDesk(fleet.loader, silent), new SignalDesk(fleet.loader, silent)];
    desk.invalidate(invalidation());
    const seen = { [gone.take('w', {}).epoch]: 50 };
    const signalled = desk.take('w', seen);
    expect(signalled).toMatchObject({ invalidate: [], newest: 1 });
    expect(signalled.epoch).not.toBe(Object.keys(seen)[0]);
  });

  it('the number of invalidations in an answer is bounded', () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const { epoch } = desk.take('w', {});
    for (let i = 0; i < 5_000; i++) desk.invalidate(invalidation());
    expect(desk.take('w', { [epoch]: 0 })).toMatchObject({ newest: 5_000, invalidate: { length: 1_000 } });
    expect(desk.take('w', { [epoch]: 4_999 }).invalidate).toHaveLength(1);
  });

  it('a kill ends one poll of the worker, and the remaining one if another has ended', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const worker = newId();
    await tenant.ready(1);
    const stage = { db: await tenant.db(), time: fleet.time };
    const [run] = await claim(stage, 'none:default', { worker });
    const [ended, open, other] = [desk.poll(worker), desk.poll(worker), desk.poll(worker)];
    desk.endPoll(worker, ended);
    await cancel(stage, run?.id ?? '');
    await desk.lookAt(tenant.row.id);
    expect([open, other].filter(({ signal }) => signal.aborted)).toHaveLength(1);
    expect(desk.take(worker, {}).cancel.map((each) => each.run)).toContain(run?.id);
  });

  it('the end of an older poll does not end a newer one', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const worker = newId();
    const old = desk.poll(worker);
    const current = desk.poll(worker);
    desk.endPoll(worker, old);
    await tenant.ready(1);
    const stage = { db: await tenant.db(), time: fleet.time };
    const [run] = await claim(stage, 'none:default', { worker });
    await cancel(stage, run?.id ?? '');
    await desk.lookAt(tenant.row.id);
    expect(current.signal.aborted).toBe(true);
    desk.endPoll(worker, current);
  });

  it('all polls end when the gateway is quiet, and no further poll begins', () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const polls = [desk.poll('a'), desk.poll('a'), desk.poll('b')];
    desk.quiet();
    expect(polls.every(({ signal }) => signal.aborted)).toBe(true);
    expect(() => desk.poll('a')).toThrow('is stopping');
  });

  it('an unreadable tenant causes no error: the heartbeat carries the kill', async () => {
    await new SignalDesk(fleet.loader, silent).lookAt('nowhere');
  });
});
