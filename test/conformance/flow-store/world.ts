/** What the parts of the suite share: a tenant with some flows, and conductors that are driven by hand. */
import type { FlowEngine } from '../../../src/contract/flows.ts';
import { type Memory, memoryOf } from '../../../src/flows/executions/memory.ts';
import { type Db, sql } from '../../../src/kernel/sql.ts';
import type { TestContext } from '../../harness/engine-context.ts';
import { type DriverOptions, StoreDriver } from '../../harness/flows/store-driver.ts';

export interface StoreWorld {
  readonly engine: FlowEngine;
  readonly ctx: TestContext;
  readonly db: Db;
}

export const flows = [
  {
    flow: 'three',
    labels: { customer: '$(input.customer)', missing: '$(input.nothing)' },
    steps: [
      { task: 'a', with: { n: '$(f.?n.orValue(0))' }, result: 'f.a' },
      { task: 'b', result: 'f.b' },
      { task: 'c', result: 'f.c' },
    ],
  },
  { flow: 'nap', steps: [{ wait: '1h' }] },
  {
    flow: 'ears',
    steps: [
      { on: { signal: 'note' }, do: [{ set: { 'f.last': '$(event.payload)' } }] },
      { wait: { on: { signal: 'end' } } },
    ],
  },
  {
    flow: 'ship',
    steps: [{ task: 'ship', process: { command: ['true'] }, queue: 'big', result: 'f.shipped' }, { task: 'a' }],
  },
  { flow: 'pooled', steps: [{ task: 'ship', process: { command: ['true'] }, pool: 'crane' }] },
  {
    flow: 'approve',
    steps: [
      {
        task: 'approve',
        human: { assignee: '$(f.boss)', title: 'Expense $(f.id)', form: { approved: 'boolean' } },
        result: 'f.decision',
      },
    ],
  },
  {
    flow: 'parent',
    steps: [{ call: '$(f.child)', with: { n: '$(f.?n.orValue(0))' }, mode: 'child', result: 'f.answer' }],
  },
  { flow: 'detacher', steps: [{ call: '$(f.child)', mode: 'detached', result: 'f.launched' }, { task: 'a' }] },
  { flow: 'caller', steps: [{ signal: 'note', to: '$(f.to)', payload: { from: 'caller' } }] },
  { flow: 'grow', steps: [{ loop: [{ task: 'a', result: 'f.last' }], max: 1000 }] },
  {
    flow: 'secret',
    sealed: ['f.card'],
    steps: [
      { task: 'a', with: { card: '$(f.card)' } },
      { task: 'ship', process: { command: ['pay', '$(f.card)'] } },
      { task: 'approve', human: { team: 'finance', title: 'Charge $(f.card)' } },
      { call: 'three', with: { card: '$(f.card)' } },
    ],
  },
] as const;

export function driverOf({ ctx, engine }: StoreWorld, more: Omit<DriverOptions, 'ctx' | 'engine'> = {}): StoreDriver {
  return new StoreDriver({ ctx, engine, ...more });
}

export async function memoryIn(driver: StoreDriver, id: string): Promise<Memory> {
  return memoryOf(await driver.fetch(id));
}

/** The id of the node that stands at a position. */
export async function nodeAt(driver: StoreDriver, id: string, at: string): Promise<string> {
  const { state } = await memoryIn(driver, id);
  const found = Object.entries(state.nodes).find(([, node]) => node.at === at);
  if (found === undefined) throw new Error(`no node at ${at}`);
  return found[0];
}

export function revisionsOf(db: Db, id: string): Promise<{ rev: number; commit_id: string }[]> {
  return db.rows(sql`select rev, commit_id from commit where execution_id = ${id} order by rev`);
}

export async function eventsOf(db: Db, id: string): Promise<{ type: string; actor: string | null; body: object }[]> {
  const rows = await db.rows<{ type: string; actor: string | null; body: string }>(sql`
    select type, actor, body from event where topic_id = 7 and subject = ${id} order by seq`);
  return rows.map(({ body, ...row }) => ({ ...row, body: JSON.parse(body) as object }));
}
