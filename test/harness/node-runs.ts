/** Runs of nodes, queued as an engine of flows does it: rows, gates and events in one commit. */
import { nodeLaneOf } from '../../src/contract/lane.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';

export interface NodePlan {
  readonly execution?: string;
  readonly nid?: string;
  readonly attempt?: number;
  readonly queue?: string;
  readonly project?: string | null;
  readonly pool?: string | null;
  readonly priority?: 'low' | 'normal' | 'high';
  readonly env?: object;
  readonly params?: object;
  /** The whole runtime block, instead of a process. */
  readonly runtime?: { readonly kind: string } & Readonly<Record<string, unknown>>;
}

/** Stores the head of an execution, so that runs of its nodes have somebody to answer to. */
export async function makeExecution(
  db: Db,
  at: Date,
  { owner = null, status = 0 }: { readonly owner?: string | null; readonly status?: number } = {},
): Promise<string> {
  const id = newId();
  await db.exec(sql`
    insert into execution (id, rev, owner, status, flow_id, version, format, created_at, updated_at)
    values (${id}, 1, ${owner}, ${status}, ${newId()}, 1, 1, ${at}, ${at})`);
  return id;
}

/** A message in the inbox of an execution. */
export type Stored = {
  readonly id: string;
  readonly body: {
    readonly body: { readonly outcome: Readonly<Record<string, unknown>> } & Record<string, unknown>;
  } & Record<string, unknown>;
};

export function inboxOf(db: Db, execution: string): Promise<Stored[]> {
  return db.rows<Stored>(sql`select id, body from inbox where execution_id = ${execution} order by id`);
}

/** Returns the ids of the created runs. */
export function queueNodes(db: Db, at: Date, plans: readonly NodePlan[]): Promise<string[]> {
  const works = plans.map(({ env = {}, params, runtime }) =>
    JSON.stringify({
      name: 'ship',
      timeout_ms: 60_000,
      ...(params !== undefined && { params }),
      runtime: runtime ?? { kind: 'process', command: ['true'], env, cwd: null },
    }),
  );
  return db.transaction(async (tx) => {
    const queued = await tx.one<{ created: string[] | null; bodies: string[] | null; gates: string[] | null }>(sql`
      select created, bodies, gates
        from queue_node_runs(
          ${plans.map(({ execution }) => execution ?? newId())}::uuid[],
          ${plans.map(({ nid }) => nid ?? '0_1')}::text[],
          ${plans.map(({ attempt }) => attempt ?? 1)}::integer[],
          ${works}::json[],
          ${plans.map(({ project }) => project ?? null)}::uuid[],
          ${plans.map(({ queue, runtime }) => nodeLaneOf(runtime?.kind ?? 'process', queue ?? 'default'))}::text[],
          ${plans.map(({ priority }) => priority ?? 'normal')}::priority[],
          ${plans.map(({ pool }) => pool ?? null)}::text[],
          ${at}::timestamptz)`);
    await tx.exec(sql`select work_gates(${queued.gates}::uuid[], null, null, null, ${at}::timestamptz)`);
    const causes = queued.created?.map(() => null) ?? null;
    await tx.exec(sql`
      select append_run_events(null, null, ${queued.created}::uuid[], ${causes}::uuid[], ${queued.bodies}::text[],
                               null, ${at}::timestamptz)`);
    return queued.created ?? [];
  });
}
