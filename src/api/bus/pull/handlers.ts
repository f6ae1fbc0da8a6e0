/** Handlers of pull: fetch a batch, acknowledge it, give it back, or keep it longer. */
import { type HeldBatch, ackBatch, extendBatch, nackBatch } from '../../../bus/subscribers/pull-queries.ts';
import { pullLeaseMs, type PulledBatch, samplingOf, takeBatch } from '../../../bus/subscribers/pull.ts';
import type { Subscriber } from '../../../bus/subscribers/queries.ts';
import type { Caller } from '../../../contract/roles.ts';
import { MillraceError } from '../../../errors.ts';
import { makeHintBell } from '../../../events/bell.ts';
import type { Input } from '../../../http/endpoint.ts';
import type { ApiContext, ApiHandlers } from '../../context.ts';
import { ownSubscriber } from '../whose.ts';
import type { pullEndpoints } from './endpoints.ts';
import { PullTurns } from './turns.ts';

type Endpoints = typeof pullEndpoints;

/** Between two looks while a consumer waits. The wake-up of a publication comes before couriers have counted the events. */
const lookMs = 250;

async function pullingSubscriber(ctx: ApiContext, caller: Caller | undefined): Promise<Subscriber> {
  const subscriber = await ownSubscriber(ctx, caller);
  if (subscriber.kind !== 'pull') {
    throw new MillraceError('conflict', 'the subscriber is not of kind `pull`: its events go to its callback');
  }
  return subscriber;
}

const turns = new PullTurns();

async function fetchBatch({ query, caller, signal }: Input<Endpoints['GET /bus/subscriber/batch']>, ctx: ApiContext) {
  const waitMs = query.wait * 1_000;
  const deadline = performance.now() + waitMs;
  const { id } = await pullingSubscriber(ctx, caller);
  const patience = AbortSignal.any([signal, AbortSignal.timeout(Math.max(waitMs, lookMs))]);
  const turn = await turns.take(id, patience);
  if (turn === undefined) return noBatch();
  const bell = makeHintBell(ctx.hints, ['bus']);
  try {
    while (!signal.aborted) {
      const taken = await takeBatch(ctx, await activeSubscriber(ctx, caller));
      if ('id' in taken) return renderBatch(taken);
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) break;
      const dueMs = taken.nextAtMs === undefined ? lookMs : taken.nextAtMs - ctx.time.now();
      await bell.wait(Math.max(1, Math.min(leftMs, dueMs, lookMs)), signal);
    }
    return noBatch();
  } finally {
    bell.close();
    turn.release();
  }
}

async function activeSubscriber(ctx: ApiContext, caller: Caller | undefined): Promise<Subscriber> {
  const subscriber = await pullingSubscriber(ctx, caller);
  if (subscriber.state === 'active') return subscriber;
  throw new MillraceError('conflict', `the subscriber is ${subscriber.state}: ${subscriber.reason ?? ''}`);
}

const noBatch = (): Response => new Response(null, { status: 204 });

/** The events are JSON already. */
function renderBatch({ id, lease, until, events }: PulledBatch): Response {
  const head = JSON.stringify({ id, lease, until: until.toISOString() }).slice(0, -1);
  return new Response(`${head},"events":${events}}`, { headers: { 'content-type': 'application/json' } });
}

async function heldBatch(
  ctx: ApiContext,
  caller: Caller | undefined,
  id: string,
  lease: number | undefined,
): Promise<HeldBatch> {
  return { subscriber: (await pullingSubscriber(ctx, caller)).id, id, lease };
}

function requireHeld(isHeld: boolean, id: string): void {
  if (isHeld) return;
  throw new MillraceError('conflict', `the batch ${id} is not handed out, or its lease has passed on`);
}

export const pullHandlers: ApiHandlers<Endpoints> = {
  'GET /bus/subscriber/batch': fetchBatch,
  'POST /bus/subscriber/batch/{id}/ack': async ({ params, body, caller }, ctx) => {
    const batch = await heldBatch(ctx, caller, params.id, body.lease);
    const now = ctx.time.now();
    const spoken = { now: new Date(now), isLogged: samplingOf(ctx).takes(now) };
    requireHeld(await ackBatch(ctx.db, batch, spoken), params.id);
  },
  'POST /bus/subscriber/batch/{id}/nack': async ({ params, body, caller }, ctx) => {
    const batch = await heldBatch(ctx, caller, params.id, body.lease);
    const now = ctx.time.now();
    requireHeld(await nackBatch(ctx.db, batch, new Date(now + body.delay), new Date(now)), params.id);
  },
  'POST /bus/subscriber/batch/{id}/extend': async ({ params, body, caller }, ctx) => {
    const until = new Date(ctx.time.now() + pullLeaseMs);
    const batch = await heldBatch(ctx, caller, params.id, body.lease);
    requireHeld(await extendBatch(ctx.db, batch, until), params.id);
    return { until: until.toISOString() };
  },
};
