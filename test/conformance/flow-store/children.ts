/** Executions that nodes of others call. */
import { describe, expect, it } from 'vitest';
import { sql } from '../../../src/kernel/sql.ts';
import { driverOf, memoryIn, type StoreWorld } from './world.ts';

export function describeChildren(world: StoreWorld): void {
  const childOf = (id: string) =>
    world.db.maybeOne<{ id: string; rev: number; depth: number; parent_nid: string }>(sql`
      select id, rev, depth, parent_nid from execution where parent = ${id}`);
  const cancel = { point: 'operate', operation: { action: 'cancel', nid: null } } as const;

  describe('children', () => {
    it('A child is launched by the commit of its parent, and its end is the answer to the node that called it.', async () => {
      const driver = driverOf(world);
      const id = await driver.launch('parent', { child: 'three', n: 4 });
      const child = await childOf(id);
      expect(child).toMatchObject({ rev: 0, depth: 1 });
      await driver.drain();
      expect(driver.calls).toMatchObject([{ execution: child?.id, name: 'a', input: { n: 4 } }]);
      for (const result of [1, 2, 'the end']) await driver.answer(result);
      await driver.drain();
      const { state } = await memoryIn(driver, id);
      expect(state.f['answer']).toBe('the end');
      expect(state.ending).toEqual({ kind: 'done' });
    });

    it('A child is cancelled with the node that called it, and the node closes when the child has ended.', async () => {
      const driver = driverOf(world);
      const id = await driver.launch('parent', { child: 'nap' });
      await driver.drain();
      const child = (await childOf(id))?.id ?? '';
      await driver.send(id, cancel);
      expect((await memoryIn(driver, id)).state.ending).toBeNull();
      await driver.drain();
      expect((await memoryIn(driver, child)).state.ending).toEqual({ kind: 'cancelled' });
      expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'cancelled' });
    });

    it('A child whose cancellation overtakes its launch never begins.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('parent', { child: 'three' });
      await driver.send(id, cancel);
      const child = (await childOf(id))?.id ?? '';
      const waiting = await engine.waiting(ctx, { id: driver.member, living: [driver.member] }, 1_000);
      const own = waiting.filter(({ execution }) => execution === child);
      expect(own.map(({ point }) => point)).toEqual(['launch', 'operate']);
      for (const message of own.toReversed()) await driver.apply(message);
      await driver.drain();
      expect(driver.calls).toEqual([]);
      expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'cancelled' });
    });

    it.each(['parent', 'detacher'])(
      'A %s that calls a flow that does not exist gets a failure at that step.',
      async (flow) => {
        const driver = driverOf(world);
        const id = await driver.launch(flow, { child: 'unknown' });
        await driver.drain();
        const { state, tally } = await memoryIn(driver, id);
        expect(tally.incidents).toBe(1);
        const [error] = Object.values(state.nodes).flatMap((node) => node.error ?? []);
        expect(error).toMatchObject({ code: 'no_such_flow', message: 'there is no flow unknown' });
      },
    );

    it('A detached execution has no parent, and the step that launches it ends with its id.', async () => {
      const driver = driverOf(world);
      const id = await driver.launch('detacher', { child: 'nap' });
      await driver.drain();
      const launched = (await memoryIn(driver, id)).state.f['launched'] as string;
      expect(await driver.fetch(launched)).toMatchObject({ rev: 1, over: false });
      expect(await childOf(id)).toBeUndefined();
      await driver.send(id, { point: 'operate', operation: { action: 'kill', nid: null } });
      await driver.drain();
      expect((await driver.fetch(launched)).over).toBe(false);
    });

    it('Executions that call each other more than 64 deep fail.', async () => {
      const driver = driverOf(world);
      const id = await driver.launch('parent', { child: 'nap' }, { depth: 64 });
      const { state } = await memoryIn(driver, id);
      expect(Object.values(state.nodes).flatMap((node) => node.error?.code ?? [])).toEqual(['too_deep']);
    });
  });
}
