/** Handlers that control a subscriber: pause, resume, a test delivery, and signing secrets. */
import { setTimeout as sleep } from 'node:timers/promises';
import { testKey } from '../../../bus/errand-keys.ts';
import { addSecret, endSecrets, pauseSubscriber, resumeSubscriber } from '../../../bus/subscribers/control.ts';
import { pushErrands } from '../../../bus/subscribers/errands.ts';
import type { Subscriber } from '../../../bus/subscribers/queries.ts';
import type { Caller } from '../../../contract/roles.ts';
import { MillraceError } from '../../../errors.ts';
import { recording } from '../../../events/append.ts';
import { type ApiContext, type ApiHandlers, author } from '../../context.ts';
import { findTestDelivery, newestDelivery } from '../deliveries/queries.ts';
import { renderDelivery } from '../deliveries/views.ts';
import { WaitingRequests } from '../../live/waiting.ts';
import { showSubscriber } from '../subscribers/views.ts';
import { namedSubscriber, ownSubscriber } from '../whose.ts';
import type { controlEndpoints } from './endpoints.ts';

/** Waits for the result of a test. */
const testTimes = { patienceMs: 5_000, lookMs: 100 };
/** A test looks ten times a second. */
const waiting = new WaitingRequests(10);

/** Sends through a courier, because only couriers may call receivers. */
async function sendTest(
  ctx: ApiContext,
  caller: Caller | undefined,
  { id, name, kind }: Subscriber,
  signal: AbortSignal,
) {
  if (kind === 'pull') throw new MillraceError('conflict', 'a subscriber of kind `pull` has no callback to test');
  const before = await newestDelivery(ctx.db, id);
  await recording(ctx.db, author(ctx, caller), async (tx) => {
    await pushErrands(tx, 'aux', [testKey(id)]);
    tx.record('millrace_bus', { type: 'subscriber.tested', subject: id, body: { name } });
  });
  ctx.hints.send('bus');
  const deadline = performance.now() + testTimes.patienceMs;
  while (performance.now() < deadline && !signal.aborted) {
    const found = await findTestDelivery(ctx.db, id, before);
    if (found !== undefined) return Response.json({ batch: found.batch, delivery: renderDelivery(found) });
    await sleep(testTimes.lookMs);
  }
  return Response.json({ batch: null, delivery: null }, { status: 202 });
}

const detailOf = (ctx: ApiContext, id: string, caller: Caller | undefined) =>
  showSubscriber(ctx, id, caller?.kind === 'key' ? caller.identity?.id : undefined);

type Endpoints = typeof controlEndpoints;

async function pause(ctx: ApiContext, caller: Caller | undefined, { id }: Subscriber, reason: string | undefined) {
  await pauseSubscriber(ctx, author(ctx, caller), id, reason);
  return detailOf(ctx, id, caller);
}

async function resume(
  ctx: ApiContext,
  caller: Caller | undefined,
  { id }: Subscriber,
  from: string | Date | undefined,
) {
  await resumeSubscriber(ctx, author(ctx, caller), id, from);
  return detailOf(ctx, id, caller);
}

export const controlHandlers: ApiHandlers<Endpoints> = {
  'POST /bus/subscriber/pause': async ({ body, caller }, ctx) =>
    pause(ctx, caller, await ownSubscriber(ctx, caller), body.reason),
  'POST /bus/subscriber/resume': async ({ body, caller }, ctx) =>
    resume(ctx, caller, await ownSubscriber(ctx, caller), body.from),
  'POST /bus/subscriber/test': async ({ caller, signal }, ctx) =>
    waiting.during(caller, async () => sendTest(ctx, caller, await ownSubscriber(ctx, caller), signal)),
  'POST /bus/subscriber/secret': async ({ body, caller }, ctx) =>
    addSecret(ctx, author(ctx, caller), (await ownSubscriber(ctx, caller)).id, body.secret),
  'DELETE /bus/subscriber/secret': async ({ query, caller }, ctx) =>
    endSecrets(ctx, author(ctx, caller), (await ownSubscriber(ctx, caller)).id, query.all),
  'POST /bus/subscribers/{id}/pause': async ({ params, body, caller }, ctx) =>
    pause(ctx, caller, await namedSubscriber(ctx, params.id), body.reason),
  'POST /bus/subscribers/{id}/resume': async ({ params, body, caller }, ctx) =>
    resume(ctx, caller, await namedSubscriber(ctx, params.id), body.from),
  'POST /bus/subscribers/{id}/test': async ({ params, caller, signal }, ctx) =>
    waiting.during(caller, async () => sendTest(ctx, caller, await namedSubscriber(ctx, params.id), signal)),
  'POST /bus/subscribers/{id}/secret': async ({ params, body, caller }, ctx) =>
    addSecret(ctx, author(ctx, caller), (await namedSubscriber(ctx, params.id)).id, body.secret),
  'DELETE /bus/subscribers/{id}/secret': async ({ params, query, caller }, ctx) =>
    endSecrets(ctx, author(ctx, caller), (await namedSubscriber(ctx, params.id)).id, query.all),
};
