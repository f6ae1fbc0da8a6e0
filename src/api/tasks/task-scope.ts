/**
 * The scope of a running task: its own task, its project, and its job at its own instant. Its credential names a run and a
 * lease. Each call checks in the database whether they are current, so a credential expires with its lease.
 *
 * The scope of a worker's key: the tasks and projects of runs that its workers hold.
 */
import type { Caller, TaskCaller } from '../../contract/roles.ts';
import type { RuntimeBlock } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { ApiContext } from '../context.ts';

/** The objects that a request names. Ids may be in upper or lower case. */
export interface Scope {
  readonly task?: string;
  readonly job?: string;
  readonly project?: string;
  readonly instant?: Date;
}

/** For the run of a node, task, job and instant are null. */
type RunScope = {
  readonly task: string | null;
  readonly version: number;
  readonly job: string | null;
  /** null: the run can read only the global stash. */
  readonly project: string | null;
  readonly instant: Date | null;
  readonly worker: string;
  /** The runtime block of a node. */
  readonly runtime: RuntimeBlock | null;
};

/** Finds the scope of a run with this lease. Throws if the run has ended. */
export async function scopeOf(db: Db, run: string, lease: number): Promise<RunScope> {
  const scope = await findScope(db, run, lease);
  if (scope !== undefined) return scope;
  throw new MillraceError('forbidden', 'the run that this credential was made for has ended');
}

function findScope(db: Db, run: string, lease: number): Promise<RunScope | undefined> {
  return db.maybeOne<RunScope>(sql`
    select live.task_id as task, live.version, task.job_id as job, live.instant, live.worker_id as worker,
           coalesce(job.project_id, node_run.project_id) as project, node_run.work -> 'runtime' as runtime
      from live
      left join task on task.id = live.task_id
      left join job on job.id = task.job_id
      left join node_run on node_run.run_id = live.id
     where live.id = ${run} and live.lease = ${lease} and live.worker_id is not null`);
}

/**
 * Keys of people pass, because their roles were already checked. A task must hold its lease, and may name only its own scope.
 * A worker's key needs a worker that holds a run of the named objects.
 */
export async function restrictTask(
  { db, directory }: Pick<ApiContext, 'db' | 'directory'>,
  caller: Caller | undefined,
  named: Scope,
): Promise<void> {
  if (caller?.kind === 'task') return restrictToOwnScope(db, caller, named);
  if (caller?.role !== 'worker') return;
  const workers = (caller.keyId === undefined ? [] : await directory.workersOfKey?.(caller.keyId)) ?? [];
  if (!(await holdsAny(db, workers, named)))
    throw new MillraceError('forbidden', 'no worker of this key holds a run of this task or project');
}

async function restrictToOwnScope(db: Db, caller: TaskCaller, named: Scope): Promise<void> {
  const own = await scopeOf(db, caller.run, caller.lease);
  const mine =
    sameId(named.task, own.task) &&
    sameId(named.job, own.job) &&
    sameId(named.project, own.project) &&
    (named.instant === undefined || named.instant.getTime() === own.instant?.getTime());
  if (!mine) throw new MillraceError('forbidden', 'a task may access only its own task, job, instant and project');
}

async function holdsAny(db: Db, workers: readonly string[], named: Scope): Promise<boolean> {
  const { held } = await db.one<{ held: boolean }>(sql`
    select exists (
      select
        from live
        left join task on task.id = live.task_id
        left join job on job.id = task.job_id
        left join node_run on node_run.run_id = live.id
       where live.worker_id = any (${workers}::uuid[])
         and (${named.task ?? null}::uuid is null or task.id = ${named.task ?? null})
         and (${named.job ?? null}::uuid is null or job.id = ${named.job ?? null})
         and (${named.project ?? null}::uuid is null
              or coalesce(job.project_id, node_run.project_id) = ${named.project ?? null})
         and (${named.instant ?? null}::timestamptz is null or live.instant = ${named.instant ?? null})) as held`);
  return held;
}

/** Keys pass. A task may access only the run that its credential names. */
export function restrictToOwnRun(caller: Caller | undefined, run: string): void {
  if (caller?.kind === 'task' && caller.run !== run.toLowerCase()) {
    throw new MillraceError('forbidden', 'a task may access only its own run');
  }
}

function sameId(named: string | undefined, own: string | null): boolean {
  return named === undefined || named.toLowerCase() === own;
}
