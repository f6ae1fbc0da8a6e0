/** Changes a live execution: sets fields, and replaces steps. The answer shows what the change comes to. */
import { documentParser } from '../../../documents/parser.ts';
import type { Operation } from '../../../flows/interpreter/state.ts';
import type { Input } from '../../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, badRequest } from '../../context.ts';
import { answerOf, deliver, messageIdOf } from '../deliver.ts';
import { requireExecution } from '../views/handlers.ts';
import type { patchEndpoints } from './endpoints.ts';
import { planChange, type PlannedChange } from './plan-change.ts';
import { previewChange } from './preview.ts';

type Endpoints = typeof patchEndpoints;

async function patch(input: Input<Endpoints['PATCH /api/executions/{id}']>, ctx: ApiContext): Promise<Response> {
  const { params, body, caller, request } = input;
  if (isEmpty(body.fields) && isEmpty(body.swap)) throw badRequest('body', 'has neither fields nor steps to swap');
  const stored = await requireExecution(ctx, params.id);
  const operation = operationOf(await planChange(ctx, stored, body, request.signal), body.force);
  // in turn: a document of thousands of steps holds the event loop for a tenth of a second
  const diff = await documentParser.inTurn(
    ctx.tenant.id,
    async () => previewChange(stored, operation, ctx.time.now()),
    request.signal,
  );
  if (body.dry_run) return Response.json({ outcome: 'dry_run', diff });
  const letter = {
    execution: stored.head.id,
    body: { point: 'operate', operation },
    id: messageIdOf(request),
  } as const;
  const [delivered] = await deliver(ctx, caller, [letter]);
  const answer = await answerOf(ctx, delivered);
  return Response.json({ ...((await answer.json()) as object), diff }, { status: answer.status });
}

function isEmpty(object: object | undefined): boolean {
  return object === undefined || Object.keys(object).length === 0;
}

function operationOf({ fields, swap }: PlannedChange, force: boolean): Operation {
  return swap === undefined ? { action: 'fields', fields } : { action: 'swap', ...swap, force, fields };
}

export const patchHandlers: ApiHandlers<Endpoints> = { 'PATCH /api/executions/{id}': patch };
