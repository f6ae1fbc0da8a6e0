/** Messages that are stored, timers, and what a message leaves behind that changes nothing. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/id.ts';
import { sql } from '../../../src/kernel/sql.ts';
import { driverOf, eventsOf, memoryIn, nodeAt, revisionsOf, type StoreWorld } from './world.ts';

export function describeMessages(world: StoreWorld): void {
  const inboxOf = (id: string) => world.db.rows(sql`select id from inbox where execution_id = ${id}`);

  describe('messages', () => {
    it('A launch that no conductor takes is stored, and its commit takes it out of the inbox.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const message = driver.launchMessage('three', { n: 1, customer: 'lee' }, { key: 'stored' });
      expect(await engine.accept(ctx, [message], null)).toEqual([{ kind: 'accepted' }]);
      expect(await engine.accept(ctx, [message], null)).toEqual([{ kind: 'accepted' }]);
      const again = driver.launchMessage('three', {}, { key: 'stored' });
      expect(await engine.accept(ctx, [again], null)).toEqual([{ kind: 'known', execution: message.execution }]);
      const me = { id: driver.member, living: [driver.member] };
      expect(await engine.waiting(ctx, me, 10)).toEqual([{ ...message, isStored: true }]);
      await driver.drain();
      expect(await engine.waiting(ctx, me, 10)).toEqual([]);
      expect(await driver.fetch(message.execution)).toMatchObject({ rev: 1, owner: driver.member });
      const labels = await world.db.rows(sql`select value from label where execution_id = ${message.execution}`);
      expect(labels).toEqual([{ value: 'lee' }]);
    });

    it('Messages for executions that have ended or do not exist, and launches of unknown flows, are not stored.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('nap');
      await driver.send(id, { point: 'operate', operation: { action: 'kill', nid: null } });
      const signal = { point: 'signal', name: 'x', payload: null } as const;
      const messages = [
        driver.message(id, signal),
        driver.message(newId(), signal),
        driver.launchMessage('unknown'),
        driver.launchMessage('three', {}, { version: 9 }),
      ];
      expect(await engine.accept(ctx, messages, null)).toMatchObject([
        { kind: 'refused', code: 'over' },
        { kind: 'gone' },
        { kind: 'refused', code: 'no_such_flow' },
        { kind: 'refused', code: 'no_such_version' },
      ]);
      expect(await engine.blank(ctx, messages.slice(2))).toMatchObject([
        { ok: false, code: 'no_such_flow' },
        { ok: false, code: 'no_such_version' },
      ]);
    });

    it('A message that had its effect before the execution ended is known when its sender repeats it.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('nap');
      const kill = driver.message(id, { point: 'operate', operation: { action: 'kill', nid: null } });
      await driver.apply(kill);
      expect(await engine.accept(ctx, [kill], null)).toEqual([{ kind: 'known', execution: id }]);
      expect(await inboxOf(id)).toEqual([]);
    });

    it('A message that is refused makes no revision, and leaves the inbox.', async () => {
      const { engine, ctx, db } = world;
      const driver = driverOf(world);
      const id = await driver.launch('three');
      const message = driver.message(id, { point: 'operate', operation: { action: 'retry', nid: 'none' } });
      await engine.accept(ctx, [message], null);
      const { run, outcome } = await driver.apply({ ...message, isStored: true });
      expect(run.refused?.code).toBe('no_such_node');
      expect(run.to).toBe(run.from);
      expect(outcome).toEqual({ kind: 'won' });
      expect(await inboxOf(id)).toEqual([]);
      expect(await revisionsOf(db, id)).toHaveLength(1);
    });

    it('A conductor with an old state cannot take a message out of the inbox by refusing it.', async () => {
      const { engine, ctx } = world;
      const [stale, fresh] = [driverOf(world), driverOf(world)];
      const id = await stale.launch('three');
      const old = await stale.fetch(id);
      const [call] = stale.calls;
      const nid = call?.nid ?? '';
      await fresh.send(id, { point: 'answer', nid, attempt: 1, outcome: { kind: 'done', result: 1 } });
      const next = await nodeAt(fresh, id, '0_1');
      const answer = { point: 'answer', nid: next, attempt: 1, outcome: { kind: 'done', result: 2 } } as const;
      const message = stale.message(id, answer, { id: `answer/${next}/1` });
      await engine.accept(ctx, [message], null);
      const run = stale.execute(old, { ...message, isStored: true });
      expect(run.refused?.code).toBe('too_late');
      expect((await stale.put([run])).outcomes).toEqual([{ kind: 'lost' }]);
      expect(await inboxOf(id)).toEqual([{ id: message.id }]);
    });

    it('A message that comes twice has one effect.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('ears');
      const message = driver.message(id, { point: 'signal', name: 'note', payload: 'once' });
      await driver.apply(message);
      await engine.accept(ctx, [message], null);
      const { run } = await driver.apply({ ...message, isStored: true });
      expect(run.to.rev).toBe(2);
      expect(await inboxOf(id)).toEqual([]);
    });

    it('A timer is stored, is due, takes effect once, and is gone.', async () => {
      const { engine, ctx, db } = world;
      const driver = driverOf(world);
      const id = await driver.launch('nap');
      const me = { id: driver.member, living: [driver.member] };
      const dueMs = ctx.time.now() + 3_600_000;
      expect((await engine.due(ctx, me, ctx.time.now(), 100)).filter((mark) => mark.execution === id)).toEqual([]);
      const mark = (await engine.due(ctx, me, dueMs + 1_000, 1_000)).find((each) => each.execution === id);
      expect(mark).toMatchObject({ execution: id, generation: 1 });
      expect(Math.abs((mark?.dueMs ?? 0) - dueMs)).toBeLessThan(60_000);
      const body = { point: 'timer', name: mark?.name ?? '', generation: 1 } as const;
      const early = await driver.send(id, body);
      expect(early.run.refused?.code).toBe('too_early');
      const late = driver.execute(await driver.fetch(id), driver.message(id, body), { nowMs: dueMs + 60_000 });
      expect((await driver.put([late])).outcomes).toEqual([{ kind: 'won' }]);
      expect((await memoryIn(driver, id)).state.ending).toEqual({ kind: 'done' });
      expect(await db.rows(sql`select name from timer where execution_id = ${id}`)).toEqual([]);
      expect((await driver.send(id, body)).run.refused?.code).toBe('over');
    });

    it('Large messages are read in pages, the oldest first, and none is left out.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('ears');
      const me = { id: driver.member, living: [driver.member] };
      const payload = 'x'.repeat(1_000_000);
      const messages = Array.from({ length: 18 }, () => driver.message(id, { point: 'signal', name: 'note', payload }));
      for (const message of messages) await engine.accept(ctx, [message], null);
      const read: string[] = [];
      for (let pages = 0; read.length < messages.length && pages < 5; pages++) {
        const page = (await engine.waiting(ctx, me, 1_000)).filter(({ execution }) => execution === id);
        expect(page.length).toBeLessThan(18);
        for (const message of page) await driver.apply(message);
        read.push(...page.map((message) => message.id));
      }
      expect(read).toEqual(messages.map((message) => message.id));
    });

    it('Timers of a paused execution are not due, and are all set again when it goes on.', async () => {
      const { engine, ctx, db } = world;
      const driver = driverOf(world);
      const id = await driver.launch('nap');
      const operate = (action: 'pause' | 'resume') =>
        driver.send(id, { point: 'operate', operation: { action } }, { actor: 'kim' });
      await operate('pause');
      const me = { id: driver.member, living: [driver.member] };
      const due = async () =>
        (await engine.due(ctx, me, ctx.time.now() + 7_200_000, 1_000)).filter((mark) => mark.execution === id);
      expect(await due()).toEqual([]);
      const { run } = await operate('resume');
      expect(run.timers.set).toHaveLength(1);
      expect(await due()).toEqual(run.timers.set);
      expect((await eventsOf(db, id)).map(({ type, actor }) => [type, actor])).toEqual([
        ['execution.started', 'anna'],
        ['execution.paused', 'kim'],
        ['execution.resumed', 'kim'],
      ]);
    });

    it('A signal to another execution arrives in its inbox with the commit that sends it.', async () => {
      const driver = driverOf(world);
      const to = await driver.launch('ears');
      const message = driver.launchMessage('caller', { to });
      const { receivers } = await driver.put([driver.execute(await driver.blank(message), message)]);
      expect(receivers).toEqual([{ execution: to, owner: driver.member }]);
      await driver.drain();
      expect((await memoryIn(driver, to)).state.f).toEqual({ last: { from: 'caller' } });
      // nobody is told of an execution that does not exist
      const lost = driver.launchMessage('caller', { to: newId() });
      expect((await driver.put([driver.execute(await driver.blank(lost), lost)])).receivers).toEqual([]);
    });

    it('An execution that was accepted can be cancelled before it is launched, and then never begins.', async () => {
      const { engine, ctx, db } = world;
      const driver = driverOf(world);
      const launch = driver.launchMessage('three');
      const id = launch.execution;
      await engine.accept(ctx, [launch], null);
      const cancel = driver.message(id, { point: 'operate', operation: { action: 'cancel', nid: null } });
      expect((await driver.apply(cancel)).outcome).toEqual({ kind: 'won' });
      await driver.drain();
      expect(driver.calls).toEqual([]);
      expect(await db.one(sql`select status, rev from execution where id = ${id}`)).toEqual({ status: 5, rev: 1 });
    });
  });
}
