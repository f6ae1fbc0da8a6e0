/**
 * Runs as workers get them, whether claimed or accepted. One answer is limited in bytes, and runs that do not fit are returned to
 * the queue.
 */
import type { EngineContext } from '../contract/context.ts';
import { maxClaimBytes } from '../contract/engine.ts';
import type { ClaimedRun, NodeWork } from '../contract/wire.ts';
import { unseal } from '../flows/executions/sealing.ts';
import { type Db, type Sql, sql } from '../kernel/sql.ts';
import { returnRuns } from './return-runs.ts';

type Work = Pick<NodeWork, 'name' | 'timeout_ms' | 'runtime'> & { readonly params?: Record<string, unknown> };

type NodeRow = Pick<NodeWork, 'execution' | 'id' | 'project'> & {
  /** Encrypted if the flow has sealed fields. */
  readonly work: Work | { readonly sealed: string };
};

export type HandedOut = {
  readonly id: string;
  /** Null, like the instant, if the run is about a node. */
  readonly task_id: string | null;
  readonly instant: Date | null;
  readonly version: number;
  readonly attempt: number;
  readonly priority: ClaimedRun['priority'];
  readonly lease: number;
  readonly worker_id: string;
  /** Null if there are none, or if they did not fit. */
  readonly params: Record<string, unknown> | null;
  readonly node: NodeRow | null;
  /** The size of params and node as JSON. */
  readonly bytes: number;
  readonly fits: boolean;
  readonly rank: Date;
};

/** `claimed`: a call of a function that hands runs out. `bytes`: the size of this answer so far. */
export function listHandedOut(db: Db, claimed: Sql, bytes: number): Promise<HandedOut[]> {
  const left = maxClaimBytes - bytes;
  return db.rows<HandedOut>(sql`
    select id, task_id, instant, version, attempt, priority, lease, worker_id,
           case when before < ${left} then params end as params, case when before < ${left} then node end as node,
           bytes, before < ${left} as fits, rank
      from (
        select claimed.*, bytes,
               coalesce(sum(bytes) over (rows between unbounded preceding and 1 preceding), 0) as before
          from ${claimed} as claimed
         cross join lateral (
           select coalesce(octet_length(params::text), 0) + coalesce(octet_length(node::text), 0) as bytes
         ) as measured
      ) as sized`);
}

type Sized = Pick<HandedOut, 'id' | 'lease' | 'fits'>;

/** Returns runs that did not fit to the queue, for the next claim. */
export async function returnExcess(db: Db, found: readonly Sized[], ctx: EngineContext): Promise<void> {
  const excess = found.flatMap(({ id: run, lease, fits }) => (fits ? [] : [{ run, lease }]));
  await returnRuns(db, excess, new Date(ctx.time.now())).catch((error: unknown) => {
    ctx.log.warn({ err: error, runs: excess.length }, 'returning runs failed; they will count as lost');
  });
}

interface From {
  readonly ctx: EngineContext;
  readonly engine: string;
  /** Whether a task could use a credential. Signing is the most expensive part of handing out a run. */
  readonly executes: boolean;
}

/** Written out field by field: spreading one object into another was fifteen times as expensive (measured). */
export function claimedRun(row: Omit<HandedOut, 'rank'>, { ctx, engine, executes }: From): ClaimedRun {
  const { id: tenant, name } = ctx.tenant;
  const { id: run, lease, task_id: task, instant } = row;
  if (task === null || instant === null) return nodeRun(row, { ctx, engine });
  return {
    tenant,
    run,
    lease,
    tenant_name: name,
    engine,
    task,
    version: row.version,
    instant: instant.toISOString(),
    attempt: row.attempt,
    priority: row.priority,
    params: row.params ?? {},
    credential: executes ? ctx.secrets.signRun({ tenant, run, lease }) : '',
  };
}

/** A run without data about its node still goes to its worker, which reports that it cannot be run. */
function nodeRun(row: Omit<HandedOut, 'rank'>, { ctx, engine }: Omit<From, 'executes'>): ClaimedRun {
  const { id: tenant, name } = ctx.tenant;
  const { id: run, lease, node } = row;
  const { work: stored, ...place } = node ?? { execution: run, id: '', project: null, work: unknownWork };
  const work = openWork(ctx, stored);
  return {
    tenant,
    run,
    lease,
    tenant_name: name,
    engine,
    attempt: row.attempt,
    priority: row.priority,
    params: work.params ?? {},
    credential: ctx.secrets.signRun({ tenant, run, lease }),
    node: { ...place, name: work.name, timeout_ms: work.timeout_ms, runtime: work.runtime },
  };
}

/** Work that cannot be opened, such as after the loss of its key, fails its own run: a claim must hand out the others. */
function openWork({ secrets, log }: EngineContext, work: NodeRow['work']): Work {
  if (!('sealed' in work)) return work;
  try {
    return unseal(secrets, work) as unknown as Work;
  } catch (error) {
    log.warn({ err: error }, 'the work of a node cannot be opened');
    return unknownWork;
  }
}

/** No worker knows this kind, so the run ends in `error`. */
const unknownWork: Work = { name: '', timeout_ms: 60_000, runtime: { kind: 'unreadable' } };
