/** Handlers of subscribers: subscribe, list, read, change, remove, and give to another key. */
import {
  changeSubscriber,
  removeSubscriber,
  subscribe,
  transferSubscriber,
  unsubscribe,
} from '../../../bus/subscribers/subscribe.ts';
import type { Caller } from '../../../contract/roles.ts';
import type { Input } from '../../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, author } from '../../context.ts';
import { cutPage } from '../page-bytes.ts';
import { identityOf, namedSubscriber, ownSubscriber } from '../whose.ts';
import type { subscriberEndpoints } from './endpoints.ts';
import { listSubscribers } from './queries.ts';
import { renderListed, showSubscriber } from './views.ts';

type Endpoints = typeof subscriberEndpoints;

async function subscribeCaller({ body, caller }: Input<Endpoints['POST /bus/subscription']>, ctx: ApiContext) {
  await subscribe(ctx, author(ctx, caller), identityOf(caller), body);
}

/** Routemaster's array ends after this many subscribers, or a megabyte; the header `Link` has the next page. */
const maxListed = 1_000;

async function list({ query, caller }: Input<Endpoints['GET /bus/subscriptions']>, ctx: ApiContext) {
  const { limit = maxListed, cursor } = query;
  const rows = await listSubscribers(ctx.db, { after: cursor, limit: limit + 1 });
  const identity = keyIdentity(caller);
  const page = cutPage(
    rows,
    limit,
    (row) => renderListed(ctx, row, identity),
    (row) => row.subscriber,
  );
  if (query.limit !== undefined || cursor !== undefined) return page;
  if (page.next === null) return page.items;
  const next = `?limit=${maxListed}&cursor=${encodeURIComponent(page.next)}`;
  return Response.json(page.items, { headers: { link: `<${next}>; rel="next"` } });
}

function keyIdentity(caller: Caller | undefined): string | undefined {
  return caller?.kind === 'key' ? caller.identity?.id : undefined;
}

export const subscriberHandlers: ApiHandlers<Endpoints> = {
  'POST /bus/subscription': subscribeCaller,
  'POST /bus/subscriber': subscribeCaller,
  'GET /bus/subscriptions': list,
  'GET /bus/subscribers': list,
  'GET /bus/subscriber': async ({ caller }, ctx) =>
    showSubscriber(ctx, (await ownSubscriber(ctx, caller)).id, keyIdentity(caller)),
  'PATCH /bus/subscriber': async ({ body, caller }, ctx) => {
    const { id } = await ownSubscriber(ctx, caller);
    await changeSubscriber(ctx, author(ctx, caller), id, body);
    return showSubscriber(ctx, id, keyIdentity(caller));
  },
  'DELETE /bus/subscriber': async ({ caller }, ctx) =>
    removeSubscriber(ctx, author(ctx, caller), (await ownSubscriber(ctx, caller)).id),
  'DELETE /bus/subscriber/topics/{name}': async ({ params, caller }, ctx) =>
    unsubscribe(ctx, author(ctx, caller), (await ownSubscriber(ctx, caller)).id, params.name),
  'GET /bus/subscribers/{id}': async ({ params, caller }, ctx) =>
    showSubscriber(ctx, (await namedSubscriber(ctx, params.id)).id, keyIdentity(caller)),
  'PATCH /bus/subscribers/{id}': async ({ params, body, caller }, ctx) => {
    const { id } = await namedSubscriber(ctx, params.id);
    await changeSubscriber(ctx, author(ctx, caller), id, body);
    return showSubscriber(ctx, id, keyIdentity(caller));
  },
  'DELETE /bus/subscribers/{id}': async ({ params, caller }, ctx) =>
    removeSubscriber(ctx, author(ctx, caller), (await namedSubscriber(ctx, params.id)).id),
  'DELETE /bus/subscribers/{id}/topics/{name}': async ({ params, caller }, ctx) =>
    unsubscribe(ctx, author(ctx, caller), (await namedSubscriber(ctx, params.id)).id, params.name),
  'PUT /bus/subscribers/{id}/owner': async ({ params, body, caller }, ctx) => {
    const { id } = await namedSubscriber(ctx, params.id);
    await transferSubscriber(ctx, author(ctx, caller), id, body.identity);
    return showSubscriber(ctx, id, keyIdentity(caller));
  },
};
