/** Handlers of replays. */
import { positionAt } from '../../../bus/subscribers/positions.ts';
import type { Subscriber } from '../../../bus/subscribers/queries.ts';
import { cancelReplay, startReplay } from '../../../bus/subscribers/replays.ts';
import type { Caller } from '../../../contract/roles.ts';
import { type ApiContext, type ApiHandlers, author, badRequest, requireFound } from '../../context.ts';
import { cursorOf, parseCursor, uuidCursor } from '../cursor.ts';
import { cutPage } from '../page-bytes.ts';
import { namedSubscriber, ownSubscriber } from '../whose.ts';
import type { replayEndpoints } from './endpoints.ts';
import { findReplay, listReplays, readHead, type ReplayRow } from './queries.ts';

type Endpoints = typeof replayEndpoints;

interface Wish {
  readonly from: string | Date;
  readonly to?: string | Date | undefined;
  readonly only_undelivered: boolean;
}

async function start(ctx: ApiContext, caller: Caller | undefined, subscriber: Subscriber, wish: Wish) {
  const head = await readHead(ctx.db);
  const from = (await positionAt(ctx.db, wish.from)) ?? head;
  if (from >= head) throw badRequest('body.from', `is after the newest event, which has the number ${head}`);
  const to = await lastOf(ctx, wish.to, head);
  if (isBefore(wish, from, to)) throw badRequest('body.to', 'is before `from`');
  const range = { from, to, onlyUndelivered: wish.only_undelivered };
  return { id: await startReplay(ctx, author(ctx, caller), subscriber, range) };
}

/** Between two times in order there may be no event. `from`: the number before the first event. */
function isBefore(wish: Wish, from: number, to: number): boolean {
  if (wish.from instanceof Date && wish.to instanceof Date) return wish.to < wish.from;
  return to <= from;
}

/** A number names the last event; a time ends before the first event of that time. */
async function lastOf(ctx: ApiContext, to: string | Date | undefined, head: number): Promise<number> {
  if (to === undefined) return head;
  const last = typeof to === 'string' ? Number(to) : ((await positionAt(ctx.db, to)) ?? head);
  return Math.min(last, head);
}

function render({ id, from_seq, to_seq, pos, sent, only_undelivered, state, by, at }: ReplayRow) {
  const ends = { from: String(from_seq), to: String(to_seq), position: String(pos) };
  return { id, ...ends, sent, only_undelivered, state, by, at: at.toISOString() };
}

async function list(ctx: ApiContext, { id }: Subscriber, query: { limit: number; cursor?: string | undefined }) {
  const before = parseCursor(query.cursor, uuidCursor);
  const rows = await listReplays(ctx.db, { subscriber: id, before, limit: query.limit + 1 });
  return cutPage(rows, query.limit, render, cursorOf);
}

async function show(ctx: ApiContext, subscriber: Subscriber, id: string) {
  return render(requireFound(await findReplay(ctx.db, subscriber.id, id), 'replay', id));
}

export const replayHandlers: ApiHandlers<Endpoints> = {
  'POST /bus/subscriber/replays': async ({ body, caller }, ctx) =>
    start(ctx, caller, await ownSubscriber(ctx, caller), body),
  'GET /bus/subscriber/replays': async ({ query, caller }, ctx) => list(ctx, await ownSubscriber(ctx, caller), query),
  'GET /bus/subscriber/replays/{id}': async ({ params, caller }, ctx) =>
    show(ctx, await ownSubscriber(ctx, caller), params.id),
  'DELETE /bus/subscriber/replays/{id}': async ({ params, caller }, ctx) =>
    cancelReplay(ctx, author(ctx, caller), await ownSubscriber(ctx, caller), params.id),
  'POST /bus/subscribers/{id}/replays': async ({ params, body, caller }, ctx) =>
    start(ctx, caller, await namedSubscriber(ctx, params.id), body),
  'GET /bus/subscribers/{id}/replays': async ({ params, query }, ctx) =>
    list(ctx, await namedSubscriber(ctx, params.id), query),
  'GET /bus/subscribers/{id}/replays/{replay}': async ({ params }, ctx) =>
    show(ctx, await namedSubscriber(ctx, params.id), params.replay),
  'DELETE /bus/subscribers/{id}/replays/{replay}': async ({ params, caller }, ctx) =>
    cancelReplay(ctx, author(ctx, caller), await namedSubscriber(ctx, params.id), params.replay),
};
