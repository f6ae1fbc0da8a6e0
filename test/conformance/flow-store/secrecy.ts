/** Fields that are stored encrypted. */
import { describe, expect, it } from 'vitest';
import { readHistory } from '../../../src/flows/executions/history.ts';
import { maskSealed } from '../../../src/flows/executions/masking.ts';
import { readExecution } from '../../../src/flows/executions/stored.ts';
import { sql } from '../../../src/kernel/sql.ts';
import { driverOf, memoryIn, type StoreWorld } from './world.ts';

const card = '4929-8801-2234-5567';

export function describeSecrecy(world: StoreWorld): void {
  /** Every row of the tenant that holds the text. */
  const findText = async (text: string): Promise<string[]> => {
    const tables = await world.db.rows<{ name: string }>(sql`
      select c.relname as name from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p')`);
    const found: string[] = [];
    for (const { name } of tables) {
      const { rows } = await world.ctx.pool.query<{ n: string }>(
        `select count(*) as n from ${name} t where t::text like '%' || $1 || '%'`,
        [text],
      );
      if (Number(rows[0]?.n) > 0) found.push(name);
    }
    return found;
  };

  describe('sealed fields', () => {
    it('The values of an execution with sealed fields are in no column in clear, and tasks get them.', async () => {
      const { ctx, db, engine } = world;
      const driver = driverOf(world);
      const launch = driver.launchMessage('secret', { card });
      await engine.accept(ctx, [launch], null);
      const id = launch.execution;
      expect(await findText(card)).toEqual([]);
      await driver.drain();
      expect(driver.calls).toMatchObject([{ input: { card } }]);
      expect(await findText(card)).toEqual([]);
      await driver.answer({ echo: card });
      const { run_id } = await db.one<{ run_id: string }>(sql`select run_id from node_run where execution_id = ${id}`);
      expect(run_id).toBeDefined();
      const nid =
        Object.entries((await memoryIn(driver, id)).state.nodes).find(([, node]) => node.at === '0_1')?.[0] ?? '';
      await driver.send(id, { point: 'answer', nid, attempt: 1, outcome: { kind: 'done', result: null } });
      expect(await db.rows(sql`select title, team from workitem where execution_id = ${id}`)).toEqual([
        { title: 'approve', team: 'finance' },
      ]);
      const item =
        Object.entries((await memoryIn(driver, id)).state.nodes).find(([, node]) => node.at === '0_2')?.[0] ?? '';
      const outcome = { kind: 'done', result: { note: card } } as const;
      const message = driver.message(id, { point: 'answer', nid: item, attempt: 1, outcome });
      await engine.accept(ctx, [message], null);
      expect(await findText(card)).toEqual([]);
      await driver.apply(message);
      expect(await findText(card)).toEqual([]);
      expect((await memoryIn(driver, id)).state.f).toEqual({ card });
    });

    it('People see dots where values are sealed, wherever they were copied to.', async () => {
      const { ctx } = world;
      const driver = driverOf(world);
      const id = await driver.launch('secret', { card });
      const stored = await readExecution(ctx, id);
      if (stored === undefined) throw new Error('not stored');
      expect(stored.state.f).toEqual({ card });
      expect(JSON.stringify(maskSealed(stored.flow, stored.state))).not.toContain(card);
      const history = await readHistory(ctx, id, { limit: 10 });
      expect(JSON.stringify(history)).toContain(card);
      expect(JSON.stringify(maskSealed(stored.flow, history))).not.toContain(card);
    });
  });
}
