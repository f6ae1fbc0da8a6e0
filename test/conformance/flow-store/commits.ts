/** Each execution is compared and set by itself, and its commits are one chain. */
import { describe, expect, it } from 'vitest';
import type { FlowRun } from '../../../src/contract/flows.ts';
import { memoryOf } from '../../../src/flows/executions/memory.ts';
import { newId } from '../../../src/kernel/id.ts';
import { sql } from '../../../src/kernel/sql.ts';
import { driverOf, eventsOf, memoryIn, revisionsOf, type StoreWorld } from './world.ts';

export function describeCommits(world: StoreWorld): void {
  describe('commits', () => {
    it('An execution of three steps is launched, answered and done, and is read back as it was in memory.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const id = await driver.launch('three', { n: 5, customer: 'kim' });
      expect(driver.calls).toMatchObject([{ execution: id, name: 'a', input: { n: 5 }, flow: 'three' }]);
      await driver.answer({ x: 1 });
      await driver.answer();
      const { run, outcome } = await driver.answer('end');
      expect(outcome).toEqual({ kind: 'won' });
      const read = await driver.fetch(id);
      expect(memoryOf(read).state).toEqual(memoryOf(run.to).state);
      expect(memoryOf(read).state.f).toEqual({ n: 5, customer: 'kim', a: { x: 1 }, b: null, c: 'end' });
      expect(read).toMatchObject({ id, rev: 4, owner: driver.member, epoch: 0, over: true });
      const head = await db.one(
        sql`select status, calls, ended_at is not null as ended from execution where id = ${id}`,
      );
      expect(head).toEqual({ status: 3, calls: 0, ended: true });
      const labels = await db.rows(sql`select name, value from label where execution_id = ${id}`);
      expect(labels).toEqual([{ name: 'customer', value: 'kim' }]);
      expect(await eventsOf(db, id)).toEqual([
        { type: 'execution.started', actor: 'anna', body: { flow: 'three', version: 1, key: null } },
        { type: 'execution.done', actor: null, body: { flow: 'three' } },
      ]);
    });

    it('Of two conductors that commit the same revision, one wins, and the other changes nothing.', async () => {
      const { db } = world;
      const [one, two] = [driverOf(world), driverOf(world)];
      const id = await one.launch('ears');
      const execution = await one.fetch(id);
      const note = (payload: string) => one.message(id, { point: 'signal', name: 'note', payload });
      const won = await one.put([one.execute(execution, note('first'))]);
      const lost = await two.put([two.execute(execution, note('second'))]);
      expect([won.outcomes, lost.outcomes]).toEqual([[{ kind: 'won' }], [{ kind: 'lost' }]]);
      expect(await revisionsOf(db, id)).toHaveLength(2);
      expect((await memoryIn(one, id)).state.f).toEqual({ last: 'first' });
      expect(await one.fetch(id)).toMatchObject({ owner: one.member, epoch: 0 });
      // it reads the execution again, and takes it over
      const again = await two.send(id, { point: 'signal', name: 'note', payload: 'second' });
      expect(again.outcome).toEqual({ kind: 'won' });
      expect(await one.fetch(id)).toMatchObject({ rev: 3, owner: two.member, epoch: 1 });
    });

    it('Executions that others have not touched are committed beside those that are lost.', async () => {
      const driver = driverOf(world);
      const ids = [await driver.launch('ears'), await driver.launch('ears'), await driver.launch('ears')];
      const executions = await world.engine.fetch(world.ctx, ids);
      const runs = executions.map((execution) =>
        driver.execute(execution, driver.message(execution.id, { point: 'signal', name: 'note', payload: 1 })),
      );
      await driver.send(runs[1]?.from.id ?? '', { point: 'signal', name: 'note', payload: 0 });
      const { outcomes } = await driver.put(runs);
      expect(outcomes.map(({ kind }) => kind)).toEqual(['won', 'lost', 'won']);
    });

    it('Several runs of one execution count together, or not at all.', async () => {
      const driver = driverOf(world);
      const id = await driver.launch('ears');
      const chain = (from: FlowRun['to'], payloads: readonly number[]): FlowRun[] => {
        const runs: FlowRun[] = [];
        for (const payload of payloads)
          runs.push(
            driver.execute(runs.at(-1)?.to ?? from, driver.message(id, { point: 'signal', name: 'note', payload })),
          );
        return runs;
      };
      const first = await driver.fetch(id);
      const runs = chain(first, [1, 2, 3]);
      expect((await driver.put(runs)).outcomes).toEqual([{ kind: 'won' }, { kind: 'won' }, { kind: 'won' }]);
      expect((await revisionsOf(world.db, id)).map(({ rev }) => rev)).toEqual([1, 2, 3, 4]);
      expect((await memoryIn(driver, id)).state.f).toEqual({ last: 3 });
      const stale = chain(first, [7, 8]);
      expect((await driver.put(stale)).outcomes).toEqual([{ kind: 'lost' }, { kind: 'lost' }]);
      const second = await driver.fetch(id);
      const [one, two, three] = chain(second, [4, 5, 6]);
      const gap = [one, three].flatMap((run) => run ?? []);
      expect((await driver.put(gap)).outcomes).toEqual([{ kind: 'lost' }, { kind: 'lost' }]);
      expect((await memoryIn(driver, id)).state.f).toEqual({ last: 3 });
      expect(two).toBeDefined();
    });

    it('Rivals that commit the same executions in any order make chains without gaps, and never deadlock.', async () => {
      const { db, engine, ctx } = world;
      const count = 120;
      const first = driverOf(world);
      const launches = Array.from({ length: count }, () => first.launchMessage('ears'));
      const blanks = await engine.blank(ctx, launches);
      const begun = launches.flatMap((message, i) => {
        const blank = blanks[i];
        return blank?.ok === true ? [first.execute(blank.execution, message)] : [];
      });
      await first.put(begun);
      const ids = launches.map(({ execution }) => execution);
      const before = await deadlocks();
      let won = 0;
      const rival = async (turn: number): Promise<void> => {
        const driver = driverOf(world);
        for (let round = 0; round < 6; round++) {
          const some = shuffled(await engine.fetch(ctx, ids), turn * 10 + round).slice(0, 80);
          const { outcomes } = await driver.put(
            some.map((each) =>
              driver.execute(each, driver.message(each.id, { point: 'signal', name: 'note', payload: turn })),
            ),
          );
          won += outcomes.filter(({ kind }) => kind === 'won').length;
        }
      };
      await Promise.all([rival(1), rival(2), rival(3), rival(4)]);
      const heads = await db.rows<{ id: string; rev: number; commits: number; newest: number }>(sql`
        select e.id, e.rev, count(*)::integer as commits, max(c.rev) as newest
          from execution e join commit c on c.execution_id = e.id
         where e.id = any (${ids}::uuid[])
         group by e.id`);
      expect(heads).toHaveLength(count);
      for (const { rev, commits, newest } of heads) expect([commits, newest]).toEqual([rev, rev]);
      expect(heads.reduce((sum, { rev }) => sum + rev - 1, 0)).toBe(won);
      expect(await deadlocks()).toBe(before);

      async function deadlocks(): Promise<number> {
        const { n } = await db.one<{ n: number }>(sql`
          select deadlocks::integer as n from pg_stat_database where datname = current_database()`);
        return n;
      }
    });

    it('A launch with a key that an execution has is answered with that execution, and makes none.', async () => {
      const { db } = world;
      const driver = driverOf(world);
      const first = await driver.launch('three', {}, { key: 'once' });
      const again = driver.launchMessage('three', {}, { key: 'once' });
      const other = driver.launchMessage('three', {}, { key: 'twice' });
      const same = driver.launchMessage('three', {}, { key: 'twice' });
      const runs = await Promise.all(
        [again, other, same].map(async (message) => driver.execute(await driver.blank(message), message)),
      );
      const { outcomes } = await driver.put(runs);
      expect(outcomes).toEqual([
        { kind: 'known', execution: first },
        { kind: 'won' },
        { kind: 'known', execution: other.execution },
      ]);
      const made = await db.rows(sql`
        select id from execution where id = any (${[again.execution, other.execution, same.execution]}::uuid[])`);
      expect(made).toEqual([{ id: other.execution }]);
    });

    it('Launches with the same keys that arrive at the same time make one execution for each key.', async () => {
      const { db } = world;
      const keys = Array.from({ length: 20 }, (_, i) => `race ${i}`);
      const outcomes = await Promise.all(
        [1, 2, 3, 4].map(async (turn) => {
          const driver = driverOf(world);
          const messages = shuffled(keys, turn).map((key) => driver.launchMessage('nap', {}, { key }));
          const runs = await Promise.all(
            messages.map(async (message) => driver.execute(await driver.blank(message), message)),
          );
          return (await driver.put(runs)).outcomes;
        }),
      );
      const won = outcomes.flat().filter(({ kind }) => kind === 'won');
      expect(won).toHaveLength(keys.length);
      expect(outcomes.flat().filter(({ kind }) => kind === 'lost')).toEqual([]);
      const { n } = await db.one<{ n: number }>(sql`
        select count(*)::integer as n from execution where key like 'race %'`);
      expect(n).toBe(keys.length);
    });

    it('A launch whose id exists already is lost, so that its conductor reads the execution.', async () => {
      const driver = driverOf(world);
      const message = driver.launchMessage('three');
      const blank = await driver.blank(message);
      await driver.put([driver.execute(blank, message)]);
      expect((await driver.put([driver.execute(blank, message)])).outcomes).toEqual([{ kind: 'lost' }]);
    });

    it('The outcomes of a commit whose answer was lost are found by its id.', async () => {
      const { engine, ctx } = world;
      const driver = driverOf(world);
      const commit = newId();
      const id = await driver.launch('ears');
      const launch = driver.launchMessage('three', {}, { key: 'settled' });
      const runs = [
        driver.execute(await driver.fetch(id), driver.message(id, { point: 'signal', name: 'note', payload: 1 })),
        driver.execute(await driver.blank(launch), launch),
      ];
      const not = await engine.settle(ctx, runs, commit);
      expect(not.outcomes).toEqual([{ kind: 'lost' }, { kind: 'lost' }]);
      await driver.put(runs, commit);
      expect((await engine.settle(ctx, runs, commit)).outcomes).toEqual([{ kind: 'won' }, { kind: 'won' }]);
      expect((await engine.settle(ctx, runs, newId())).outcomes).toEqual([{ kind: 'lost' }, { kind: 'lost' }]);
      const rival = driver.launchMessage('three', {}, { key: 'settled' });
      const beaten = driver.execute(await driver.blank(rival), rival);
      const settled = await engine.settle(ctx, [beaten], newId());
      expect(settled.outcomes).toEqual([{ kind: 'known', execution: launch.execution }]);
    });
  });
}

function shuffled<T>(items: readonly T[], seed: number): T[] {
  const weight = (i: number): number => (Math.imul(i + 1, 2_654_435_761) ^ Math.imul(seed + 7, 40_503)) >>> 0;
  return items
    .map((item, i) => ({ item, at: weight(i) % 100_003 }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
