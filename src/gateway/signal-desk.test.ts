import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant } from '../../test/harness/fleet.ts';
import { cancel, claim } from '../../test/harness/pipeline.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
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

const invalidation = () => ({ tenant: 'a', kind: 'project' as const, id: newId() });

describe('what a worker must hear', () => {
  it('ends its poll when a run of its is to be killed, and is told once', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const [worker, other] = [newId(), newId()];
    await tenant.ready(1);
    const stage = { db: await tenant.db(), time: fleet.time };
    const [run] = await claim(stage, 'none:default', { worker });
    const [mine, theirs] = [desk.poll(worker, 0), desk.poll(other, 0)];
    await desk.lookAt('a');
    expect(mine.signal.aborted).toBe(false);
    await cancel(stage, run?.id ?? '');
    await desk.lookAt('a');
    expect([mine.signal.aborted, theirs.signal.aborted]).toEqual([true, false]);
    expect(desk.take(worker, 0).cancel).toEqual([{ tenant: 'a', run: run?.id, lease: 1 }]);
    expect(desk.take(worker, 0).cancel).toEqual([]);
    expect(desk.take(other, 0).cancel).toEqual([]);
  });

  it('of caches to drop ends every poll and is told to each worker once', () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const [one, two] = [invalidation(), invalidation()];
    const [first, second] = [desk.poll('w1', 0), desk.poll('w2', 0)];
    desk.invalidate(one);
    desk.invalidate(two);
    expect([first.signal.aborted, second.signal.aborted]).toEqual([true, true]);
    expect(desk.take('w1', 0)).toEqual({ cancel: [], invalidate: [one, two], seen: 2 });
    expect(desk.take('w1', 2)).toEqual({ cancel: [], invalidate: [], seen: 2 });
    expect(desk.take('w2', 1)).toMatchObject({ invalidate: [two] });
    expect(desk.poll('w3', 1).signal.aborted).toBe(true);
    expect(desk.poll('w3', 2).signal.aborted).toBe(false);
  });

  it('by a gateway that started anew is not that it is behind', () => {
    const desk = new SignalDesk(fleet.loader, silent);
    expect(desk.poll('w', 50).signal.aborted).toBe(false);
    expect(desk.take('w', 50)).toEqual({ cancel: [], invalidate: [], seen: 0 });
  });

  it('is bounded, however many changes there were', () => {
    const desk = new SignalDesk(fleet.loader, silent);
    for (let i = 0; i < 5_000; i++) desk.invalidate(invalidation());
    expect(desk.take('w', 0).invalidate).toHaveLength(1_000);
    expect(desk.take('w', 4_999).invalidate).toHaveLength(1);
  });

  it('is told by one of its polls, and by one that is left when another has ended', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const worker = newId();
    await tenant.ready(1);
    const stage = { db: await tenant.db(), time: fleet.time };
    const [run] = await claim(stage, 'none:default', { worker });
    const [ended, open, other] = [desk.poll(worker, 0), desk.poll(worker, 0), desk.poll(worker, 0)];
    desk.endPoll(worker, ended);
    await cancel(stage, run?.id ?? '');
    await desk.lookAt('a');
    expect([open, other].filter(({ signal }) => signal.aborted)).toHaveLength(1);
    expect(desk.take(worker, 0).cancel.map((each) => each.run)).toContain(run?.id);
  });

  it('of a newer poll is not ended by the end of an older one', async () => {
    const desk = new SignalDesk(fleet.loader, silent);
    const old = desk.poll('w', 0);
    const current = desk.poll('w', 0);
    desk.endPoll('w', old);
    desk.invalidate(invalidation());
    expect(current.signal.aborted).toBe(true);
    desk.endPoll('w', current);
  });

  it('of a tenant that cannot be read is no error here: the heartbeat will tell', async () => {
    await new SignalDesk(fleet.loader, silent).lookAt('nowhere');
  });
});
