/** Retention of executions, as a scheduler does it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../../test/harness/engine-context.ts';
import { StoreDriver, storeFlow } from '../../../test/harness/flows/store-driver.ts';
import { HandTime } from '../../../test/harness/hand-time.ts';
import { makeTenantDatabase, type TenantDatabase } from '../../../test/harness/tenant-database.ts';
import type { Retention } from '../../contract/context.ts';
import { sql } from '../../kernel/sql.ts';
import { pruneTenant } from '../../scheduler/retention/prune.ts';
import { readExecution } from '../executions/stored.ts';
import { flowEngine } from '../flow-engine.ts';

const day = 86_400_000;
const thirtyDays: Retention = { ageMs: 30 * day, runs: null, events: null };

let tenant: TenantDatabase;
let time: HandTime;
let ctx: TestContext;
let driver: StoreDriver;
beforeAll(async () => {
  tenant = await makeTenantDatabase();
  time = new HandTime(Date.UTC(2026, 0, 1));
  ctx = makeContext({ ...tenant, time });
  driver = new StoreDriver({ ctx, engine: flowEngine });
  await storeFlow(tenant.db, { flow: 'short', labels: { kind: 'short' }, steps: [{ task: 'a' }] });
  await storeFlow(tenant.db, { flow: 'work', steps: [{ task: 'ship', process: { command: ['true'] } }] });
  await storeFlow(tenant.db, {
    flow: 'ears',
    steps: [{ on: { signal: 'note' }, do: [{ set: { 'f.last': '$(event.payload)' } }] }, { wait: '10000d' }],
  });
});
afterAll(() => tenant.close());
beforeEach(() => {
  driver.calls.length = 0;
});

const prune = (retention: Retention): Promise<number> => pruneTenant(makeContext({ ...tenant, time, retention }));

async function runShort(): Promise<string> {
  const id = await driver.launch('short');
  await driver.answer();
  return id;
}

async function left(ids: readonly string[]): Promise<string[]> {
  const rows = await tenant.db.rows<{ id: string }>(sql`
    select id from execution where id = any (${ids}::uuid[]) order by id`);
  return rows.map(({ id }) => id);
}

/** Rows about these executions in all tables. */
async function rowsAbout(id: string): Promise<number> {
  const { n } = await tenant.db.one<{ n: number }>(sql`
    select ((select count(*) from execution where id = ${id}) + (select count(*) from commit where execution_id = ${id})
            + (select count(*) from snapshot where execution_id = ${id}) + (select count(*) from label where execution_id = ${id})
            + (select count(*) from node_run where execution_id = ${id}) + (select count(*) from timer where execution_id = ${id})
            + (select count(*) from inbox where execution_id = ${id}))::integer as n`);
  return n;
}

describe('retention of executions', () => {
  it('Ended executions older than the age are deleted with everything about them; younger and live ones stay.', async () => {
    const [old, live] = [await runShort(), await driver.launch('ears')];
    time.advance(29 * day);
    const young = await runShort();
    time.advance(2 * day);
    expect(await prune(thirtyDays)).toBeGreaterThan(0);
    expect(await left([old, live, young])).toEqual([live, young].toSorted());
    expect(await rowsAbout(old)).toBe(0);
    expect(await readExecution(ctx, old)).toBeUndefined();
    expect(await prune({ ageMs: null, runs: null, events: null })).toBe(0);
  });

  it('A number keeps the newest ended executions of each flow, and deletes the runs of the others.', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) {
      const id = await driver.launch('work');
      await driver.send(id, { point: 'operate', operation: { action: 'kill', nid: null } });
      ids.push(id);
      time.advance(1_000);
    }
    const kept = await runShort();
    await prune({ ageMs: null, runs: 2, events: null });
    expect(await left(ids)).toEqual(ids.slice(2));
    expect(await left([kept])).toEqual([kept]);
    expect(await rowsAbout(ids[0] ?? '')).toBe(0);
    const { n } = await tenant.db.one<{ n: number }>(sql`
      select count(*)::integer as n from run where task_id is null`);
    expect(n).toBe(2);
  });

  it('Of an execution that goes on for ever, old commits go that its snapshot has made superfluous.', async () => {
    const id = await driver.launch('ears');
    for (let i = 0; i < 30; i++)
      await driver.send(id, { point: 'signal', name: 'note', payload: 'x'.repeat(2_000) + i });
    const { rev } = await tenant.db.one<{ rev: number }>(sql`select rev from snapshot where execution_id = ${id}`);
    const before = await readExecution(ctx, id);
    time.advance(31 * day);
    await driver.send(id, { point: 'signal', name: 'note', payload: 'new' });
    await prune(thirtyDays);
    const { first } = await tenant.db.one<{ first: number }>(sql`
      select min(rev) as first from commit where execution_id = ${id}`);
    expect(first).toBe(rev + 1);
    expect((await readExecution(ctx, id, 31))?.state).toEqual(before?.state);
    expect((await readExecution(ctx, id))?.state.f).toEqual({ last: 'new' });
    await expect(readExecution(ctx, id, 3)).rejects.toThrow('not kept any more');
  });
});
