/** Work items: list, read, claim, release and answer them. */
import { actorOf, type Caller } from '../../contract/roles.ts';
import { describeForm } from '../../flows/workitems/form.ts';
import {
  answerWorkitem,
  claimWorkitem,
  listWorkitems,
  readWorkitem,
  releaseWorkitem,
  type Workitem,
} from '../../flows/workitems/workitems.ts';
import type { Json } from '../../flows/json.ts';
import type { CallAnswer } from '../../http/client.ts';
import type { Input } from '../../http/endpoint.ts';
import { isId } from '../../kernel/id.ts';
import { type ApiContext, type ApiHandlers, badRequest } from '../context.ts';
import { requireSmall } from '../executions/value-size.ts';
import type { workitemEndpoints } from './endpoints.ts';
import { countOpen } from './queries.ts';

type Endpoints = typeof workitemEndpoints;
type Listed = CallAnswer<Endpoints['GET /api/workitems']>['items'][number];

async function list({ query, caller }: Input<Endpoints['GET /api/workitems']>, ctx: ApiContext) {
  const { assignee, team, execution, mine, limit, cursor } = query;
  if (cursor !== undefined && !isId(cursor)) throw badRequest('query.cursor', 'is not `next` of a page');
  const filter = { assignee, team, execution, cursor, mine: mine ? whoIs(caller) : undefined };
  const [{ items, hasMore }, total] = await Promise.all([listWorkitems(ctx, { ...filter, limit }), countOpen(ctx.db)]);
  return { items: items.map(viewItem), next: hasMore ? (items.at(-1)?.id ?? null) : null, total };
}

/** The names by which flows may assign work to the caller. */
function whoIs(caller: Caller | undefined): { actor: string; names: string[] } {
  const actor = caller === undefined ? 'anyone' : actorOf(caller);
  const own = caller?.kind !== 'task' ? caller?.identity?.name : undefined;
  return { actor, names: [...new Set([actor, actor.replace(/^[a-z]+:/, ''), ...(own === undefined ? [] : [own])])] };
}

function viewItem(item: Workitem): Listed {
  const { id, execution, flow, nid, name, title, assignee, team, form, dueAt, claimedBy, claimedUntil } = item;
  return {
    id,
    execution,
    flow,
    node: nid,
    name,
    title,
    assignee,
    team,
    form: describeForm(form).map((field) => ({ ...field, choices: [...field.choices] })),
    due_at: dueAt?.toISOString() ?? null,
    claimed_by: claimedBy,
    claimed_until: claimedUntil?.toISOString() ?? null,
    created_at: item.createdAt.toISOString(),
  };
}

const viewDetail = (item: Workitem) => ({ ...viewItem(item), input: item.input });

async function claim({ params, body, caller }: Input<Endpoints['POST /api/workitems/{id}/claim']>, ctx: ApiContext) {
  const { actor } = whoIs(caller);
  const item = await claimWorkitem(ctx, params.id.toLowerCase(), body.for ?? actor, body.seconds * 1_000);
  ctx.hints.send('events');
  return viewDetail(item);
}

/** An operator may also release what somebody else has claimed. */
async function release({ params, caller }: Input<Endpoints['POST /api/workitems/{id}/release']>, ctx: ApiContext) {
  const id = params.id.toLowerCase();
  const { claimedBy } = await readWorkitem(ctx, id);
  const item = await releaseWorkitem(ctx, id, claimedBy ?? whoIs(caller).actor);
  ctx.hints.send('events');
  return viewDetail(item);
}

async function answer({ params, body, caller }: Input<Endpoints['POST /api/workitems/{id}/answer']>, ctx: ApiContext) {
  const person = { actor: whoIs(caller).actor, isOperator: true };
  const given: Json = requireSmall(body, 'body');
  const receipt = await answerWorkitem(ctx, params.id.toLowerCase(), given, person);
  return Response.json(receipt, { status: receipt.outcome === 'accepted' ? 202 : 200 });
}

export const workitemHandlers: ApiHandlers<Endpoints> = {
  'GET /api/workitems': list,
  'GET /api/workitems/{id}': async ({ params }, ctx) => viewDetail(await readWorkitem(ctx, params.id.toLowerCase())),
  'POST /api/workitems/{id}/claim': claim,
  'POST /api/workitems/{id}/release': release,
  'POST /api/workitems/{id}/answer': answer,
};
