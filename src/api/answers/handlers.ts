/** Answers by link, to human tasks and to requests with a callback. The token is verified here, whatever passed it on. */
import { type AnswerClaims, readAnswerToken } from '../../flows/answer-token.ts';
import { isObject, type Json } from '../../flows/json.ts';
import { answeredAlready, type AnswerReceipt, sendAnswer } from '../../flows/workitems/answers.ts';
import { type Callback, findCallback } from '../../flows/workitems/callbacks.ts';
import { findWorkitemOf, type Workitem } from '../../flows/workitems/queries.ts';
import { answerItem } from '../../flows/workitems/workitems.ts';
import { MillraceError } from '../../errors.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import type { answerEndpoints } from './endpoints.ts';

/** The actor of a person who has answered by a link. Programs have none. */
const linkActor = 'link';

type Answerable = { readonly item: Workitem } | { readonly callback: Callback };

function readClaims(ctx: ApiContext, token: string): AnswerClaims {
  const claims = readAnswerToken(ctx.secrets, token, ctx.time.now());
  if (claims !== undefined && claims.tenantId === ctx.tenant.id) return claims;
  throw new MillraceError('not_found', 'this link is not known; copy all of it, without line breaks');
}

/** A genuine link whose task is not found is spent, too: retention may have deleted the execution. */
async function requireAnswerable(ctx: ApiContext, claims: AnswerClaims): Promise<Answerable> {
  const item = await findWorkitemOf(ctx.db, claims, new Date(ctx.time.now()));
  if (item !== undefined) {
    if (item.endedAt !== null) throw answeredAlready();
    return { item };
  }
  const callback = await findCallback(ctx.db, claims);
  if (callback === undefined || callback.isAnswered) throw answeredAlready();
  return { callback };
}

function renderItem({ title, form, flow, name, input, dueAt, claimedBy, claimedUntil }: Workitem) {
  return {
    title,
    form: isObject(form) && Object.keys(form).length > 0 ? form : null,
    flow,
    name,
    input,
    due_at: dueAt?.toISOString() ?? null,
    claimed_by: claimedBy,
    claimed_until: claimedUntil?.toISOString() ?? null,
  };
}

function renderCallback({ flow, name }: Callback) {
  return { title: null, form: null, flow, name, due_at: null, claimed_by: null, claimed_until: null };
}

async function answer(ctx: ApiContext, claims: AnswerClaims, body: Json): Promise<AnswerReceipt> {
  const found = await requireAnswerable(ctx, claims);
  if ('item' in found) return answerItem(ctx, found.item, body, { actor: linkActor, isOperator: false });
  return sendAnswer(ctx, claims, { result: body, actor: null });
}

export const answerHandlers: ApiHandlers<typeof answerEndpoints> = {
  'GET /answers/{token}': async ({ params }, ctx) => {
    const found = await requireAnswerable(ctx, readClaims(ctx, params.token));
    return 'item' in found ? renderItem(found.item) : renderCallback(found.callback);
  },
  'POST /answers/{token}': async ({ params, body }, ctx) => {
    // the body of a request is JSON
    const receipt = await answer(ctx, readClaims(ctx, params.token), (body ?? null) as Json);
    return receipt.outcome === 'accepted' ? Response.json(receipt, { status: 202 }) : receipt;
  },
};
