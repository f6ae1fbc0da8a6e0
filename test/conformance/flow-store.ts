/** What every store of executions promises: run by `flow-store.test.ts` on PostgreSQL. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FlowEngine } from '../../src/contract/flows.ts';
import { memoryOf } from '../../src/flows/executions/memory.ts';
import { sql } from '../../src/kernel/sql.ts';
import { systemTime } from '../../src/kernel/time.ts';
import { makeContext, type TestContext } from '../harness/engine-context.ts';
import { StoreDriver, storeFlow } from '../harness/flows/store-driver.ts';
import { makeTenantDatabase, type TenantDatabase } from '../harness/tenant-database.ts';

const threeSteps = {
  flow: 'three',
  labels: { customer: '$(input.customer)' },
  steps: [
    { task: 'a', with: { n: '$(f.n)' }, result: 'f.a' },
    { task: 'b', result: 'f.b' },
    { task: 'c', result: 'f.c' },
  ],
};

export function describeFlowStore(name: string, engine: FlowEngine): void {
  describe(`the store of executions on ${name}`, () => {
    let tenant: TenantDatabase;
    let ctx: TestContext;
    beforeAll(async () => {
      tenant = await makeTenantDatabase();
      ctx = makeContext({ ...tenant, time: systemTime });
      await storeFlow(tenant.db, threeSteps);
    });
    afterAll(async () => {
      await tenant.close();
    });
    const drive = (more: { readonly member?: string; readonly hosted?: readonly string[] } = {}) =>
      new StoreDriver({ ctx, engine, ...more });

    it('An execution of three steps is launched, answered and done, and is read back as it was in memory.', async () => {
      const driver = drive();
      const id = await driver.launch('three', { n: 5, customer: 'kim' });
      expect(driver.calls).toMatchObject([{ execution: id, name: 'a', input: { n: 5 } }]);
      await driver.answer({ x: 1 });
      await driver.answer();
      const { run, outcome } = await driver.answer('end');
      expect(outcome).toEqual({ kind: 'won' });
      expect(run.to.over).toBe(true);
      const read = await driver.fetch(id);
      expect(memoryOf(read).state).toEqual(memoryOf(run.to).state);
      expect(memoryOf(read).state.f).toEqual({ n: 5, customer: 'kim', a: { x: 1 }, b: null, c: 'end' });
      expect(read).toMatchObject({ id, rev: 4, owner: driver.member, over: true });
      const head = await tenant.db.one(
        sql`select status, calls, ended_at is not null as ended from execution where id = ${id}`,
      );
      expect(head).toEqual({ status: 3, calls: 0, ended: true });
      const labels = await tenant.db.rows(sql`select name, value from label where execution_id = ${id}`);
      expect(labels).toEqual([{ name: 'customer', value: 'kim' }]);
      const events = await tenant.db.rows<{ type: string; actor: string | null; body: string }>(sql`
        select type, actor, body from event where subject = ${id} order by seq`);
      expect(events.map(({ type, actor }) => [type, actor])).toEqual([
        ['execution.started', 'anna'],
        ['execution.done', null],
      ]);
      expect(JSON.parse(events[1]?.body ?? '')).toEqual({ flow: 'three' });
    });

    it('A message that is accepted waits in the inbox, and its commit takes it out.', async () => {
      const driver = drive();
      const message = driver.launchMessage('three', { n: 1 });
      expect(await engine.accept(ctx, [message], null)).toEqual([{ kind: 'accepted' }]);
      expect(await engine.accept(ctx, [message], null)).toEqual([{ kind: 'accepted' }]);
      const me = { id: driver.member, living: [driver.member] };
      expect(await engine.waiting(ctx, me, 10)).toEqual([message]);
      expect(await driver.drain()).toBe(1);
      expect(await engine.waiting(ctx, me, 10)).toEqual([]);
      expect(await driver.fetch(message.execution)).toMatchObject({ rev: 1, owner: driver.member });
    });
  });
}
