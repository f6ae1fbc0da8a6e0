/** Snapshots, revisions, histories, swaps and forks. */
import { describe, expect, it } from 'vitest';
import type { FlowRun } from '../../../src/contract/flows.ts';
import { forkOf } from '../../../src/flows/executions/fork.ts';
import { readHeads } from '../../../src/flows/executions/heads.ts';
import { readHistory } from '../../../src/flows/executions/history.ts';
import { memoryOf } from '../../../src/flows/executions/memory.ts';
import { readExecution } from '../../../src/flows/executions/stored.ts';
import { sql } from '../../../src/kernel/sql.ts';
import { driverOf, memoryIn, nodeAt, type StoreWorld } from './world.ts';

export function describeReading(world: StoreWorld): void {
  describe('reading', () => {
    it('A long execution has snapshots, and every revision is read as it was.', async () => {
      const { ctx, db } = world;
      const driver = driverOf(world);
      const launch = driver.launchMessage('grow', { pad: 'x'.repeat(3_000) });
      const states: unknown[] = [];
      let run: FlowRun = driver.execute(await driver.blank(launch), launch);
      for (let i = 0; i < 60; i++) {
        await driver.put([run]);
        states[run.to.rev] = memoryOf(run.to).state;
        const call = driver.calls.pop();
        const outcome = { kind: 'done', result: 'y'.repeat(500) + i } as const;
        const body = { point: 'answer', nid: call?.nid ?? '', attempt: 1, outcome } as const;
        run = driver.execute(run.to, driver.message(launch.execution, body));
      }
      const id = launch.execution;
      const { rev } = await db.one<{ rev: number }>(sql`select rev from snapshot where execution_id = ${id}`);
      expect(rev).toBeGreaterThan(10);
      expect((await memoryIn(driver, id)).state).toEqual(states.at(-1));
      for (const at of [1, 2, rev - 1, rev, rev + 1, 60])
        expect((await readExecution(ctx, id, at))?.state, `revision ${at}`).toEqual(states[at]);
      await expect(readExecution(ctx, id, 61)).rejects.toThrow('at revision 60');
      // what is read after a snapshot is bounded by it
      const { chars } = await db.one<{ chars: number }>(sql`
        select sum(length(entry::text))::integer as chars from commit where execution_id = ${id} and rev > ${rev}`);
      expect(chars).toBeLessThan(40_000);
    });

    it('The history names each message, its sender, and what left.', async () => {
      const { ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('three', { n: 1 });
      await driver.answer();
      await driver.send(id, { point: 'operate', operation: { action: 'pause' } }, { actor: 'kim' });
      const history = await readHistory(ctx, id, { limit: 10 });
      expect(
        history.map(({ rev, actor, member, message }) => [rev, actor, member, message.point, message.summary]),
      ).toEqual([
        [1, 'anna', driver.member, 'launch', null],
        [2, null, driver.member, 'answer', 'done'],
        [3, 'kim', driver.member, 'operate', 'pause'],
      ]);
      expect(history[0]?.out).toMatchObject([{ kind: 'task', name: 'a', by: 'hosted' }]);
      expect(history[1]?.message.nid).toContain('0_0');
      expect(await readHistory(ctx, id, { after: 2, limit: 10 })).toHaveLength(1);
    });

    it('Head rows show what an execution does, with its labels and its parent.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const busy = await driver.launch('three', { customer: 'zoe' }, { key: 'head' });
      const parent = await driver.launch('parent', { child: 'nap' });
      const heads = await readHeads(db, [busy, parent]);
      expect(heads.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toMatchObject([
        { id: busy, flow: 'three', version: 1, key: 'head', status: 'running', labels: { customer: 'zoe' }, rev: 1 },
        { id: parent, flow: 'parent', status: 'waiting', labels: {}, parent: null },
      ]);
      const { id: child } = await db.one<{ id: string }>(sql`select id from execution where parent = ${parent}`);
      const [head] = await readHeads(db, [child]);
      expect(head).toMatchObject({ rev: 0, status: 'running', parent: { execution: parent } });
      await driver.drain();
    });

    it('A step of a live execution is swapped: its node begins again with the new step, and older revisions keep their document.', async () => {
      const { ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('three');
      const before = await readExecution(ctx, id);
      const document = {
        ...before?.document,
        steps: [{ wait: { on: { signal: 'go' } } }, { task: 'b' }, { task: 'c' }],
      };
      const swap = (force: boolean) =>
        driver.send(id, { point: 'operate', operation: { action: 'swap', document, at: ['0_0'], force } });
      const refused = await swap(false);
      expect(refused.run.refused).toMatchObject({ code: 'task_running' });
      const { run, outcome } = await swap(true);
      expect(outcome).toEqual({ kind: 'won' });
      expect(run.stops).toHaveLength(1);
      const { run: next } = await driver.send(id, { point: 'signal', name: 'go', payload: null });
      expect(next.calls).toMatchObject([{ name: 'b' }]);
      expect((await readExecution(ctx, id))?.document).toEqual(document);
      expect((await readExecution(ctx, id, 1))?.document).toEqual(before?.document);
      expect((await memoryIn(driver, id)).flow.document).toEqual(document);
    });

    it('A fork begins in the state of a revision, with its running tasks begun again under its own id.', async () => {
      const { ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('three', { n: 1 }, { key: 'original' });
      await driver.answer('first');
      const original = driver.calls.pop();
      const stored = await readExecution(ctx, id, 2);
      if (stored === undefined) throw new Error('not stored');
      const body = forkOf(stored, { rev: 2, fields: { n: 9 }, document: null, at: [] });
      const launch = { ...driver.launchMessage('three'), body };
      const { outcomes } = await driver.put([driver.execute(await driver.blank(launch), launch)]);
      expect(outcomes).toEqual([{ kind: 'won' }]);
      expect(driver.calls).toMatchObject([{ execution: launch.execution, name: 'b', nid: original?.nid }]);
      const fork = await driver.fetch(launch.execution);
      expect(fork).toMatchObject({ rev: 1, over: false });
      expect(memoryOf(fork).state.f).toEqual({ n: 9, a: 'first' });
      for (const result of [1, 'forked']) await driver.answer(result);
      expect((await memoryIn(driver, launch.execution)).state.ending).toEqual({ kind: 'done' });
      expect((await driver.fetch(id)).over).toBe(false);
      const history = await readHistory(ctx, launch.execution, { limit: 1 });
      expect(history[0]?.message.summary).toBe(`fork of ${id} at 2`);
    });

    it('A fork that waits in the inbox begins in the same state, with steps that were replaced.', async () => {
      const { ctx, engine } = world;
      const driver = driverOf(world);
      const id = await driver.launch('three', { n: 2 });
      const stored = await readExecution(ctx, id);
      if (stored === undefined) throw new Error('not stored');
      const document = {
        ...stored.document,
        steps: [{ task: 'c', with: { n: '$(f.n)' } }, { task: 'b' }, { task: 'c' }],
      };
      const launch = {
        ...driver.launchMessage('three'),
        body: forkOf(stored, { rev: 1, fields: {}, document, at: ['0_0'] }),
      };
      driver.calls.length = 0;
      expect(await engine.accept(ctx, [launch], null)).toEqual([{ kind: 'accepted' }]);
      await driver.drain();
      expect(driver.calls).toMatchObject([{ execution: launch.execution, name: 'c', input: { n: 2 } }]);
      expect(await nodeAt(driver, launch.execution, '0_0')).toBeDefined();
    });

    it('A message that would make the state too large is refused, or fails its step.', async () => {
      const driver = driverOf(world);
      const big = 'x'.repeat(1_000_000);
      const launch = driver.launchMessage('three');
      let execution = driver.execute(await driver.blank(launch), launch).to;
      for (let i = 0; i < 16; i++) {
        const body = { point: 'operate', operation: { action: 'fields', fields: { [`f${i}`]: big } } } as const;
        execution = driver.execute(execution, driver.message(launch.execution, body)).to;
      }
      const more = { point: 'signal', name: 'note', payload: big } as const;
      const refused = driver.execute(execution, driver.message(launch.execution, more));
      expect(refused.refused?.code).toBe('too_large');
      expect(refused.to).toBe(execution);
      const nid = Object.entries(memoryOf(execution).state.nodes).find(([, { at }]) => at === '0_0')?.[0] ?? '';
      const outcome = { kind: 'done', result: big } as const;
      const failed = driver.execute(
        execution,
        driver.message(launch.execution, { point: 'answer', nid, attempt: 1, outcome }),
      );
      expect(memoryOf(failed.to).state.nodes[nid]?.error?.code).toBe('too_large');
    });
  });
}
