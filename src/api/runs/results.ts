/** One run with its result, and the result that a running task stores by itself. */
import { MillraceError } from '../../errors.ts';
import type { Input } from '../../http/endpoint.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { resultFault } from '../../runtimes/task/result.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import { restrictToOwnRun, scopeOf } from '../tasks/task-scope.ts';
import type { runEndpoints } from './endpoints.ts';
import { renderRun, requireRun } from './handlers.ts';
import { isSealedFlow } from './view-queries.ts';

type Endpoints = typeof runEndpoints;
type Keys = 'GET /api/runs/{id}' | 'PUT /api/runs/{id}/result';

/** Stands for a result that may hold a sealed field of its flow. */
const sealedMark = '•••';

type Made = {
  readonly result: unknown;
  readonly execution: string | null;
  readonly nid: string | null;
  readonly name: string | null;
  readonly is_sealed: boolean;
};

function findMade(db: Db, run: string): Promise<Made | undefined> {
  return db.maybeOne<Made>(sql`
    select r.result, n.execution_id as execution, n.nid, n.work ->> 'name' as name,
           ${isSealedFlow(sql`n.execution_id`)} as is_sealed
      from (
        select live.id, live.result from live where live.id = ${run}
        union all
        select run.id, run.result from run where run.id = ${run}
      ) as r
      left join node_run n on n.run_id = r.id`);
}

async function readRun({ params, caller }: Input<Endpoints['GET /api/runs/{id}']>, ctx: ApiContext) {
  restrictToOwnRun(caller, params.id);
  const run = renderRun(await requireRun(ctx, params.id));
  const { result = null, execution = null, nid, name, is_sealed } = (await findMade(ctx.db, params.id)) ?? {};
  const node = execution === null ? null : { execution, id: nid ?? '', name: name ?? '' };
  const isHidden = is_sealed === true && result !== null && caller?.kind !== 'task';
  return { ...run, node, result: isHidden ? sealedMark : result };
}

/** Returns whether the run is held under this lease. */
async function storeResult(db: Db, { run, lease }: { run: string; lease: number }, result: string): Promise<boolean> {
  const stored = await db.exec(sql`
    update live set result = ${result}::json
     where id = ${run} and lease = ${lease} and worker_id is not null`);
  return stored > 0;
}

async function putResult({ params, body, caller }: Input<Endpoints['PUT /api/runs/{id}/result']>, ctx: ApiContext) {
  if (caller?.kind !== 'task')
    throw new MillraceError('forbidden', 'only the task itself may store its result, with its credential');
  restrictToOwnRun(caller, params.id);
  const fault = resultFault(decodeText(body));
  if (fault !== undefined) throw new MillraceError('bad_request', `the result ${fault}`);
  if (await storeResult(ctx.db, caller, body.toString())) return;
  // throws, because the run has ended
  await scopeOf(ctx.db, caller.run, caller.lease);
}

function decodeText(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new MillraceError('bad_request', 'the result is not UTF-8 text');
  }
}

export const resultHandlers: ApiHandlers<Pick<Endpoints, Keys>> = {
  'GET /api/runs/{id}': readRun,
  'PUT /api/runs/{id}/result': putResult,
};
