/** Drives executions on a real database without a conductor: one message after the other through the engine's part for flows. */
import type { EngineContext } from '../../../src/contract/context.ts';
import type { FlowMessage, LaunchBody } from '../../../src/contract/flow-messages.ts';
import type {
  Circumstances,
  Execution,
  FlowEngine,
  FlowRun,
  PutOutcome,
  PutResult,
} from '../../../src/contract/flows.ts';
import type { MessageBody } from '../../../src/flows/interpreter/state.ts';
import { newId } from '../../../src/kernel/id.ts';
import { type Db, sql } from '../../../src/kernel/sql.ts';

/** Stores a definition as it is, or its next version. Returns the id of the flow. */
export async function storeFlow(
  db: Db,
  document: { readonly flow: string; readonly [key: string]: unknown },
): Promise<string> {
  const at = new Date(0);
  const known = await db.maybeOne<{ id: string; version: number }>(sql`
    select id, version from flow where name = ${document.flow} and deleted_at is null`);
  const id = known?.id ?? newId();
  const version = (known?.version ?? 0) + 1;
  await db.exec(sql`
    insert into flow (id, name, version, created_at, updated_at) values (${id}, ${document.flow}, ${version}, ${at}, ${at})
    on conflict (id) do update set version = excluded.version`);
  await db.exec(sql`
    insert into flow_version (flow_id, version, document, actor, at)
    values (${id}, ${version}, ${JSON.stringify(document)}::json, 'test', ${at})`);
  return id;
}

export interface DriverOptions {
  readonly ctx: EngineContext;
  readonly engine: FlowEngine;
  readonly member?: string;
  /** Functions that it hosts. Default: all that are asked for. */
  readonly hosted?: readonly string[];
}

export class StoreDriver {
  readonly ctx: EngineContext;
  readonly engine: FlowEngine;
  readonly member: string;
  readonly hosted: ReadonlySet<string>;
  readonly calls: FlowRun['calls'][number][] = [];

  constructor({ ctx, engine, member = newId(), hosted = ['a', 'b', 'c'] }: DriverOptions) {
    this.ctx = ctx;
    this.engine = engine;
    this.member = member;
    this.hosted = new Set(hosted);
  }

  how(more: Partial<Circumstances> = {}): Circumstances {
    return {
      nowMs: this.ctx.time.now(),
      seed: 'test',
      maxMessages: 200,
      hosted: this.hosted,
      isSpent: () => false,
      link: ({ execution, nid, attempt }) => `https://millrace.test/answers/${execution}.${nid}.${attempt}`,
      ...more,
    };
  }

  message(execution: string, body: MessageBody, more: Partial<FlowMessage> = {}): FlowMessage {
    const { point } = body;
    return { id: newId(), execution, bornMs: this.ctx.time.now(), point, actor: null, body, ...more };
  }

  launchMessage(flow: string, input: unknown = {}, more: Partial<LaunchBody> = {}): FlowMessage {
    const execution = newId();
    const body: LaunchBody = { point: 'launch', flow, input, ...more };
    return { id: execution, execution, bornMs: this.ctx.time.now(), point: 'launch', actor: 'anna', body };
  }

  execute(execution: Execution, message: FlowMessage, more: Partial<Circumstances> = {}): FlowRun {
    return this.engine.execute(execution, message, this.how(more));
  }

  async put(runs: readonly FlowRun[], commit = newId()): Promise<PutResult> {
    const result = await this.engine.put(this.ctx, runs, { member: this.member, commit, atMs: this.ctx.time.now() });
    for (const [i, run] of runs.entries()) if (result.outcomes[i]?.kind === 'won') this.calls.push(...run.calls);
    return result;
  }

  async blank(message: FlowMessage): Promise<Execution> {
    const [blank] = await this.engine.blank(this.ctx, [message]);
    if (blank?.ok !== true) throw new Error(`not launched: ${blank?.code} ${blank?.detail}`);
    return blank.execution;
  }

  async launch(flow: string, input: unknown = {}, more: Partial<LaunchBody> = {}): Promise<string> {
    const message = this.launchMessage(flow, input, more);
    await this.put([this.execute(await this.blank(message), message)]);
    return message.execution;
  }

  async fetch(id: string): Promise<Execution> {
    const [execution] = await this.engine.fetch(this.ctx, [id]);
    if (execution === undefined) throw new Error(`no execution ${id}`);
    return execution;
  }

  /** Reads the execution, applies the message, and commits. */
  async send(
    id: string,
    body: MessageBody,
    more: Partial<FlowMessage> = {},
  ): Promise<{ run: FlowRun; outcome: PutOutcome; result: PutResult }> {
    return this.apply(this.message(id, body, more));
  }

  async apply(message: FlowMessage): Promise<{ run: FlowRun; outcome: PutOutcome; result: PutResult }> {
    const run = this.execute(await this.fetch(message.execution), message);
    const result = await this.put([run]);
    return { run, outcome: result.outcomes[0] ?? { kind: 'lost' }, result };
  }

  /** Answers the oldest open call. */
  async answer(result: unknown = null): Promise<{ run: FlowRun; outcome: PutOutcome }> {
    const call = this.calls.shift();
    if (call === undefined) throw new Error('no call is open');
    const { execution, nid, attempt } = call;
    const outcome = { kind: 'done', result: result as never } as const;
    return this.send(execution, { point: 'answer', nid, attempt, outcome }, { id: `answer/${nid}/${attempt}` });
  }

  /** Takes all stored messages, until there are none. */
  async drain(): Promise<number> {
    for (let taken = 0; ; ) {
      const waiting = await this.engine.waiting(this.ctx, { id: this.member, living: [this.member] }, 100);
      if (waiting.length === 0) return taken;
      for (const message of waiting) {
        await this.apply(message);
        taken += 1;
      }
    }
  }
}
