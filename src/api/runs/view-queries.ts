/** Statements about one run: its events, its retry, the other runs of its token, its params. */
import type { NodeWork } from '../../contract/wire.ts';
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import { type FullRun, liveColumns, runColumns, withNames } from './queries.ts';

export type RunEvent = {
  readonly type: string;
  readonly actor: string | null;
  readonly at: Date;
  readonly body: string;
};

const maxEvents = 100;

export function listRunEvents(db: Db, run: string): Promise<RunEvent[]> {
  return db.rows<RunEvent>(sql`
    select type, actor, at, body
      from event
     where subject = ${run}
     order by seq
     limit ${maxEvents}`);
}

/** The due time of the retry of this run. */
export async function findRetryDue(db: Db, run: string): Promise<Date | undefined> {
  const row = await db.maybeOne<{ due_at: Date }>(sql`select due_at from retry where run_id = ${run}`);
  return row?.due_at;
}

/** True if the flow of an execution has sealed fields. `execution`: the expression of its id. */
export function isSealedFlow(execution: Sql): Sql {
  return sql`coalesce((
           select json_array_length(coalesce(v.document -> 'sealed', '[]')) > 0
             from execution e
             join flow_version v on v.flow_id = e.flow_id and v.version = e.version
            where e.id = ${execution}), false)`;
}

type NodeWorkRow = Pick<NodeWork, 'execution' | 'id' | 'project'> & {
  readonly work: Pick<NodeWork, 'name' | 'timeout_ms' | 'runtime'> & {
    readonly params?: Readonly<Record<string, unknown>>;
    readonly queue?: string | null;
  };
  /** Null: the run has ended. */
  readonly lane: string | null;
  readonly is_sealed: boolean;
};

/** The work of a node's run. */
export function findNodeWork(db: Db, run: string): Promise<NodeWorkRow | undefined> {
  return db.maybeOne<NodeWorkRow>(sql`
    select n.execution_id as execution, n.nid as id, n.work,
           case when p.id is not null then json_build_object('id', p.id, 'name', p.name) end as project,
           (select live.lane from live where live.id = n.run_id) as lane, ${isSealedFlow(sql`n.execution_id`)} as is_sealed
      from node_run n
      left join project p on p.id = n.project_id
     where n.run_id = ${run}`);
}

const maxAttempts = 100;

/** The runs of one token, newest first. */
export function listAttempts(db: Db, token: { task: string; instant: Date }): Promise<FullRun[]> {
  const { task, instant } = token;
  return db.rows<FullRun>(sql`
    ${withNames(sql`
      select ${liveColumns} from live where live.task_id = ${task} and live.instant = ${instant}
      union all
      select ${runColumns} from run where run.task_id = ${task} and run.instant = ${instant}
       order by queued_at desc, id desc
       limit ${maxAttempts}`)}
     order by r.queued_at desc, r.id desc`);
}

/** The parameters that an instant was started with. Most instants have none. */
export async function findParams(db: Db, job: string, instant: Date): Promise<Record<string, unknown>> {
  const row = await db.maybeOne<{ params: Record<string, unknown> }>(sql`
    select params
      from instant_params
     where job_id = ${job} and instant = ${instant}`);
  return row?.params ?? {};
}
