/** Statements that explain executions. */
import { type Db, sql } from '../../../kernel/sql.ts';

export type StoredMessages = {
  readonly n: number;
  readonly oldest: Date | null;
  /** What the oldest ones are: `signal`, `answer`, … */
  readonly points: readonly string[];
};

/** Messages that are counted. */
const maxCounted = 1_000;

/** Messages that are stored for the execution, and that no commit has taken. */
export function findStoredMessages(db: Db, execution: string): Promise<StoredMessages> {
  return db.one<StoredMessages>(sql`
    select count(*)::integer as n, min(at) as oldest,
           coalesce(array_agg(distinct body ->> 'point'), '{}') as points
      from (select at, body from inbox where execution_id = ${execution}::uuid limit ${maxCounted}) as stored`);
}

export type Act = { readonly actor: string | null; readonly at: Date };

/** The last event of this type about the execution. Undefined: the log does not have it any more. */
export function findLastEvent(db: Db, execution: string, type: string): Promise<Act | undefined> {
  return db.maybeOne<Act>(sql`
    select actor, at
      from event
     where subject = ${execution}::uuid and type = ${type}
     order by seq desc
     limit 1`);
}

/** The first commit of an execution. Undefined: it is not kept any more. */
export function findLaunch(db: Db, execution: string): Promise<(Act & { readonly fork: string | null }) | undefined> {
  return db.maybeOne(sql`
    select actor, at, entry -> 'm' -> 'forked' ->> 'execution' as fork
      from commit
     where execution_id = ${execution}::uuid and rev = 1`);
}

export type OpenItem = {
  readonly id: string;
  readonly nid: string;
  readonly assignee: string | null;
  readonly team: string | null;
  readonly due_at: Date | null;
  readonly claimed_by: string | null;
};

export function listOpenItems(db: Db, execution: string, at: Date, limit: number): Promise<OpenItem[]> {
  return db.rows<OpenItem>(sql`
    select id, nid, assignee, team, due_at, case when claimed_until > ${at} then claimed_by end as claimed_by
      from workitem
     where execution_id = ${execution}::uuid and ended_at is null
     order by id
     limit ${limit}`);
}

export type Caller = {
  readonly id: string;
  readonly flow: string;
  readonly key: string | null;
  readonly parent_nid: string | null;
  readonly created_at: Date;
};

/** The execution, the one that called it, and so on; the last one was called by none. */
export function listCallers(db: Db, execution: string, limit: number): Promise<Caller[]> {
  return db.rows<Caller>(sql`
    with recursive chain as (
      select 1 as n, e.* from execution e where e.id = ${execution}::uuid
      union all
      select chain.n + 1, e.* from chain join execution e on e.id = chain.parent where chain.n < ${limit}
    )
    select chain.id, flow.name as flow, chain.key, chain.parent_nid, chain.created_at
      from chain
      join flow on flow.id = chain.flow_id
     order by chain.n`);
}

/** The step that a run performs. */
export function findStepOfRun(
  db: Db,
  run: string,
): Promise<{ execution: string; nid: string; attempt: number; name: string; flow: string } | undefined> {
  return db.maybeOne(sql`
    select node_run.execution_id as execution, node_run.nid, node_run.attempt, node_run.work ->> 'name' as name,
           flow.name as flow
      from node_run
      join execution on execution.id = node_run.execution_id
      join flow on flow.id = execution.flow_id
     where node_run.run_id = ${run}`);
}
