/** Which executions a conductor may take. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/id.ts';
import type { StoreDriver } from '../../harness/flows/store-driver.ts';
import { driverOf, type StoreWorld } from './world.ts';

export function describeOwners(world: StoreWorld): void {
  const { engine } = world;
  const known = async (viewer: StoreDriver, living: readonly string[], id: string) => {
    const member = { id: viewer.member, living };
    const waiting = await engine.waiting(world.ctx, member, 10_000);
    const due = await engine.due(world.ctx, member, world.ctx.time.now() + 7_200_000, 10_000);
    return [waiting, due].map((list) => list.some(({ execution }) => execution === id));
  };

  describe('owners', () => {
    it('A conductor sees messages and timers of its own executions, and of those whose owner is not alive.', async () => {
      const { ctx } = world;
      const [owner, other] = [driverOf(world), driverOf(world)];
      const id = await owner.launch('nap');
      await engine.accept(ctx, [owner.message(id, { point: 'signal', name: 'x', payload: 1 })], null);
      expect(await known(owner, [owner.member, other.member], id)).toEqual([true, true]);
      expect(await known(other, [owner.member, other.member], id)).toEqual([false, false]);
      expect(await known(other, [other.member], id)).toEqual([true, true]);
      await owner.drain();
    });

    it('Executions of dead conductors with calls under way are orphans, and their calls are repeated with the same keys.', async () => {
      const { ctx } = world;
      const [dead, heir] = [driverOf(world), driverOf(world)];
      const [busy, idle] = [await dead.launch('three', { n: 1 }), await dead.launch('nap')];
      const living = { id: heir.member, living: [heir.member, dead.member] };
      expect(await engine.orphans(ctx, living, 1_000)).not.toContain(busy);
      const orphans = await engine.orphans(ctx, { ...living, living: [heir.member] }, 1_000);
      expect(orphans).toContain(busy);
      expect(orphans).not.toContain(idle);
      const { run } = await heir.send(busy, { point: 'continue' });
      expect(engine.unfinished(run.to, heir.hosted)).toEqual({ calls: dead.calls, more: false });
      expect(await engine.orphans(ctx, { ...living, living: [heir.member] }, 1_000)).not.toContain(busy);
      expect(await heir.fetch(busy)).toMatchObject({ owner: heir.member, epoch: 1, rev: 2 });
    });

    it('Of two conductors that take over an execution by a message without effect, one becomes its owner.', async () => {
      const [dead, one, two] = [driverOf(world), driverOf(world), driverOf(world)];
      const id = await dead.launch('nap');
      const execution = await one.fetch(id);
      const vain = { point: 'operate', operation: { action: 'resume' } } as const;
      const runs = [one, two].map((driver) => driver.execute(execution, driver.message(id, vain)));
      expect(runs.every(({ from, to }) => from === to)).toBe(true);
      const results = await Promise.all([one.put(runs.slice(0, 1)), two.put(runs.slice(1))]);
      expect(results.flatMap(({ outcomes }) => outcomes.map(({ kind }) => kind)).toSorted()).toEqual(['lost', 'won']);
      expect(await one.fetch(id)).toMatchObject({ rev: 1, epoch: 1 });
    });

    it('Work that is left over is told to a new owner.', async () => {
      const [dead, heir] = [driverOf(world), driverOf(world)];
      const launch = dead.launchMessage('three', { n: 1 });
      const run = dead.execute(await dead.blank(launch), launch, { maxMessages: 1 });
      expect(run.more).toBe(true);
      await dead.put([run]);
      const member = { id: heir.member, living: [heir.member] };
      expect(await engine.orphans(world.ctx, member, 1_000)).toContain(launch.execution);
      const read = await heir.fetch(launch.execution);
      expect(engine.unfinished(read, heir.hosted)).toEqual({ calls: [], more: true });
      const { run: next } = await heir.send(launch.execution, { point: 'continue' });
      expect(next.calls).toMatchObject([{ name: 'a' }]);
    });

    it('An execution that does not exist is left out.', async () => {
      expect(await engine.fetch(world.ctx, [newId()])).toEqual([]);
    });
  });
}
