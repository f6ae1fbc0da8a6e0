/** Runs of workers, items of people, and functions that nobody hosts. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/id.ts';
import { sql } from '../../../src/kernel/sql.ts';
import type { StoreDriver } from '../../harness/flows/store-driver.ts';
import { driverOf, eventsOf, memoryIn, nodeAt, type StoreWorld } from './world.ts';

export function describeTasks(world: StoreWorld): void {
  const runsOf = (id: string) =>
    world.db.rows<{ id: string; lane: string; attempt: number; work: object }>(sql`
      select l.id, l.lane, n.attempt, n.work from node_run n join live l on l.id = n.run_id where n.execution_id = ${id}`);
  const claim = async (id: string) => {
    const worker = newId();
    await world.db.exec(sql`
      update live set worker_id = ${worker}::uuid, incarnation = 1, lease = lease + 1, claimed_at = now() where id = ${id}::uuid`);
    return worker;
  };
  const launchRun = async (driver: StoreDriver, flow: string) => {
    const message = driver.launchMessage(flow, { id: 7 });
    const result = await driver.put([driver.execute(await driver.blank(message), message)]);
    return { id: message.execution, result };
  };
  const cancel = { point: 'operate', operation: { action: 'cancel', nid: null } } as const;

  describe('tasks', () => {
    it('A task of a worker is queued once, in the commit of its step, and wakes its lane.', async () => {
      const driver = driverOf(world);
      const { id, result } = await launchRun(driver, 'ship');
      expect(result.lanes).toEqual(['node/process:big']);
      const runs = await runsOf(id);
      expect(runs).toMatchObject([{ lane: 'node/process:big', attempt: 1 }]);
      expect(runs[0]?.work).toMatchObject({
        name: 'ship',
        params: {},
        queue: 'big',
        runtime: { kind: 'process', command: ['true'] },
      });
      expect(await world.db.one(sql`select calls, tasks from execution where id = ${id}`)).toEqual({
        calls: 0,
        tasks: 1,
      });
    });

    it('A task with a pool waits at its gate, and another one follows when its permit comes back.', async () => {
      const driver = driverOf(world);
      const [first, second] = [await launchRun(driver, 'pooled'), await launchRun(driver, 'pooled')];
      const waiting = () =>
        world.db.one<{ n: number }>(sql`
        select count(*)::integer as n from live l join node_run n on n.run_id = l.id
         where n.execution_id = any (${[first.id, second.id]}::uuid[]) and l.gate is not null`);
      expect(await waiting()).toEqual({ n: 1 });
      const { outcome } = await driver.send(first.id, cancel);
      expect(outcome).toEqual({ kind: 'won' });
      expect(await waiting()).toEqual({ n: 0 });
    });

    it('A queued run ends with its step, and its answer is in the inbox.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const { id } = await launchRun(driver, 'ship');
      const { result } = await driver.send(id, cancel);
      expect(result.cancelled).toEqual([]);
      expect(result.receivers).toEqual([{ execution: id, owner: driver.member }]);
      expect(await runsOf(id)).toEqual([]);
      const ended = await db.rows(sql`
        select r.state from run r join node_run n on n.run_id = r.id where n.execution_id = ${id}`);
      expect(ended).toEqual([{ state: 'cancelled' }]);
      await driver.drain();
      expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'cancelled' });
    });

    it.each(['cancel', 'kill'] as const)(
      'A task that begins and is stopped in one put (%s) never runs.',
      async (action) => {
        const driver = driverOf(world);
        const launch = driver.launchMessage('ship', { id: 8 });
        const id = launch.execution;
        const first = driver.execute(await driver.blank(launch), launch);
        const stop = driver.message(id, { point: 'operate', operation: { action, nid: null } });
        await driver.put([first, driver.execute(first.to, stop)]);
        expect(await runsOf(id)).toEqual([]);
        await driver.drain();
        expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'cancelled' });
      },
    );

    it('A running run is marked, and its worker is told to kill it.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const { id } = await launchRun(driver, 'ship');
      const [run] = await runsOf(id);
      const worker = await claim(run?.id ?? '');
      const { result } = await driver.send(id, cancel);
      expect(result.cancelled).toEqual([{ worker, run: run?.id, lease: 1 }]);
      expect(await db.one(sql`select cancel from live where id = ${run?.id}`)).toEqual({ cancel: true });
      expect((await memoryIn(driver, id)).state.ending).toBeNull();
      await driver.send(id, { point: 'operate', operation: { action: 'kill', nid: null } });
      expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'cancelled' });
    });

    it('An answer that comes late is refused, and changes nothing.', async () => {
      const driver = driverOf(world);
      const { id } = await launchRun(driver, 'ship');
      const nid = await nodeAt(driver, id, '0_0');
      const answer = { point: 'answer', nid, attempt: 1, outcome: { kind: 'done', result: 5 } } as const;
      await driver.send(id, answer);
      const again = await driver.send(id, answer);
      expect(again.run.refused?.code).toBe('too_late');
      expect(again.run.to.rev).toBe(2);
      expect((await memoryIn(driver, id)).state.f).toMatchObject({ shipped: 5 });
    });

    it('An item of a person is open until it is answered.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const id = await driver.launch('approve', { boss: 'ines', id: 12 });
      const items = () =>
        db.rows(sql`
        select name, title, assignee, team, form, ended_at is null as open from workitem where execution_id = ${id}`);
      const item = {
        name: 'approve',
        title: 'Expense 12',
        assignee: 'ines',
        team: null,
        form: { approved: 'boolean' },
      };
      expect(await items()).toEqual([{ ...item, open: true }]);
      const nid = await nodeAt(driver, id, '0_0');
      const outcome = { kind: 'done', result: { approved: true } } as const;
      await driver.send(id, { point: 'answer', nid, attempt: 1, outcome }, { actor: 'ines' });
      expect(await items()).toEqual([{ ...item, open: false }]);
      const events = await eventsOf(db, id);
      expect(events.map(({ type, actor }) => [type, actor])).toEqual([
        ['execution.started', 'anna'],
        ['workitem.created', null],
        ['workitem.answered', 'ines'],
        ['execution.done', null],
      ]);
    });

    it('An item of a person ends with its step, without an answer.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const id = await driver.launch('approve', { boss: 'ines', id: 13 });
      await driver.send(id, cancel);
      const open = await db.rows(sql`select id from workitem where execution_id = ${id} and ended_at is null`);
      expect(open).toEqual([]);
      const events = await eventsOf(db, id);
      expect(events.map(({ type }) => type)).not.toContain('workitem.answered');
    });

    it('A call of a function that nobody hosts waits for a conductor that does, which takes the execution over.', async () => {
      const { engine, ctx, db } = world;
      const [poor, rich] = [driverOf(world, { hosted: [] }), driverOf(world)];
      const launch = poor.launchMessage('three', { n: 3 });
      const run = poor.execute(await poor.blank(launch), launch);
      expect([run.calls, run.unhosted]).toEqual([[], ['a']]);
      await poor.put([run]);
      const id = launch.execution;
      expect(await engine.unhosted(ctx, ['b'], 1_000)).not.toContain(id);
      expect(await engine.unhosted(ctx, ['a'], 1_000)).toContain(id);
      const taken = await rich.send(id, { point: 'continue' });
      expect(taken.run.calls).toMatchObject([{ name: 'a', input: { n: 3 } }]);
      expect(engine.unfinished(taken.run.to, rich.hosted).calls).toEqual(taken.run.calls);
      expect(await engine.unhosted(ctx, ['a'], 1_000)).not.toContain(id);
      await rich.answer('done');
      expect(await db.rows(sql`select name from tracker where execution_id = ${id}`)).toEqual([]);
      expect((await memoryIn(rich, id)).state.f).toMatchObject({ a: 'done' });
    });

    it('A call that nobody hosts is answered as cancelled when its step is cancelled.', async () => {
      const driver = driverOf(world, { hosted: [] });
      const id = await driver.launch('three');
      await driver.send(id, cancel);
      await driver.drain();
      expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'cancelled' });
    });
  });
}
