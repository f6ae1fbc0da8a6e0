/** Forks an execution: a new one begins with its state, as at any revision, possibly with other fields and other steps. */
import type { Forked } from '../../../contract/flow-messages.ts';
import type { StoredExecution } from '../../../flows/executions/stored.ts';
import type { Input } from '../../../http/endpoint.ts';
import { newId } from '../../../kernel/id.ts';
import type { ApiContext, ApiHandlers } from '../../context.ts';
import { deliver } from '../deliver.ts';
import { answerOfLaunch, letterOf } from '../launch/handlers.ts';
import { planChange, type PlannedChange } from '../patch/plan-change.ts';
import { requireExecution } from '../views/handlers.ts';
import type { forkEndpoints } from './endpoints.ts';

type Endpoints = typeof forkEndpoints;

async function forkExecution(
  { params, body, caller, request }: Input<Endpoints['POST /api/executions/{id}/fork']>,
  ctx: ApiContext,
): Promise<Response> {
  const stored = await requireExecution(ctx, params.id, body.rev);
  const fork = forkOf(stored, body.rev, await planChange(ctx, stored, body, request.signal));
  const { flow, version } = stored.head;
  const letter = letterOf({ flow, version, input: stored.state.input, key: body.key, fork }, newId(ctx.time.now()));
  const [delivered] = await deliver(ctx, caller, [letter]);
  return answerOfLaunch(ctx, delivered);
}

function forkOf({ head, state, document }: StoredExecution, rev: number | undefined, change: PlannedChange): Forked {
  return {
    flowId: head.flowId,
    execution: head.id,
    rev: rev ?? head.rev,
    state: { ...state, f: { ...state.f, ...change.fields } },
    document: change.swap?.document ?? document,
    at: change.swap?.at ?? [],
  };
}

export const forkHandlers: ApiHandlers<Endpoints> = { 'POST /api/executions/{id}/fork': forkExecution };
