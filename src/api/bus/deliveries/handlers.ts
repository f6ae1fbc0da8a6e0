/** Handlers of deliveries and dead letters. A client sees its own; people and their keys see all of the tenant. */
import { recording } from '../../../events/append.ts';
import { MillraceError } from '../../../errors.ts';
import type { Subscriber } from '../../../bus/subscribers/queries.ts';
import { startReplay } from '../../../bus/subscribers/replays.ts';
import { findById } from '../../../bus/subscribers/queries.ts';
import type { Caller } from '../../../contract/roles.ts';
import type { Input } from '../../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, author, badRequest, requireFound } from '../../context.ts';
import { cursorOf, numberCursor, parseCursor, uuidCursor } from '../cursor.ts';
import { cutPage } from '../page-bytes.ts';
import { cutArray } from './cut-array.ts';
import { isClient, namedSubscriber, ownSubscriber } from '../whose.ts';
import type { deliveryEndpoints } from './endpoints.ts';
import {
  deleteLetter,
  deleteLetters,
  findLetter,
  lettersRange,
  listDeliveries,
  listLetters,
  readLetterBody,
} from './queries.ts';
import { renderDelivery, renderLetter } from './views.ts';

type Endpoints = typeof deliveryEndpoints;
/** Of a dead letter's events: a megabyte of JSON. */
const maxShownChars = 1024 * 1024;
type DeliveryQuery = Input<Endpoints['GET /bus/subscriber/deliveries']>['query'];

async function listAttempts(ctx: ApiContext, { id }: Subscriber, query: DeliveryQuery) {
  const { failed, batch, limit } = query;
  const cursor = parseCursor(query.cursor, numberCursor);
  const before = cursor && { at: cursor.at, id: Number(cursor.id) };
  const rows = await listDeliveries(ctx.db, { subscriber: id, before, failed, batch, limit: limit + 1 });
  return cutPage(rows, limit, renderDelivery, cursorOf);
}

/** The subscriber whose dead letters are meant; undefined: those of all. */
async function scopeOf(ctx: ApiContext, caller: Caller | undefined, key: string | undefined) {
  if (!isClient(caller)) return key === undefined ? undefined : namedSubscriber(ctx, key);
  const own = await ownSubscriber(ctx, caller);
  if (key !== undefined && key !== own.id && key !== own.name) {
    throw new MillraceError('forbidden', 'the dead letters of other subscribers are not yours');
  }
  return own;
}

/** A change of all dead letters is never one of all subscribers. */
async function requireScope(ctx: ApiContext, caller: Caller | undefined, key: string | undefined) {
  const scope = await scopeOf(ctx, caller, key);
  if (scope === undefined) throw badRequest('query.subscriber', 'is needed: name the subscriber');
  return scope;
}

/** A subscriber of another client is answered as if it did not exist. */
async function readLetter(ctx: ApiContext, caller: Caller | undefined, id: string) {
  const letter = requireFound(await findLetter(ctx.db, id), 'dead letter', id);
  if (isClient(caller) && (await ownSubscriber(ctx, caller)).id !== letter.subscriber_id) {
    throw new MillraceError('not_found', `dead letter not found: ${id}`);
  }
  return letter;
}

async function removeLetter({ params, caller }: Input<Endpoints['DELETE /bus/dead_letters/{id}']>, ctx: ApiContext) {
  const { id, batch, events, subscriber, subscriber_id } = await readLetter(ctx, caller, params.id);
  await recording(ctx.db, author(ctx, caller), async (tx) => {
    if ((await deleteLetter(tx, id)) === 0) throw new MillraceError('not_found', `dead letter not found: ${id}`);
    const body = { name: subscriber, batch, events };
    tx.record('millrace_bus', { type: 'dead_letter.deleted', subject: subscriber_id, body });
  });
}

async function removeLetters({ query, caller }: Input<Endpoints['DELETE /bus/dead_letters']>, ctx: ApiContext) {
  const { id, name } = await requireScope(ctx, caller, query.subscriber);
  const deleted = await recording(ctx.db, author(ctx, caller), async (tx) => {
    const count = await deleteLetters(tx, id);
    const body = { name, letters: count };
    if (count > 0) tx.record('millrace_bus', { type: 'dead_letters.deleted', subject: id, body });
    return count;
  });
  return { deleted };
}

async function replayLetter(input: Input<Endpoints['POST /bus/dead_letters/{id}/replay']>, ctx: ApiContext) {
  const { params, caller } = input;
  const letter = await readLetter(ctx, caller, params.id);
  if (!letter.has_body) {
    throw new MillraceError('conflict', 'retention dropped the events before they were delivered; they are gone');
  }
  const subscriber = requireFound(await findById(ctx.db, letter.subscriber_id), 'subscriber', letter.subscriber);
  const range = { from: letter.first_seq - 1, to: letter.last_seq, onlyUndelivered: true };
  return { id: await startReplay(ctx, author(ctx, caller), subscriber, range) };
}

async function replayLetters({ query, caller }: Input<Endpoints['POST /bus/dead_letters/replay']>, ctx: ApiContext) {
  const subscriber = await requireScope(ctx, caller, query.subscriber);
  const { first, last } = await lettersRange(ctx.db, subscriber.id);
  if (first === null || last === null) throw new MillraceError('not_found', 'there are no dead letters to deliver');
  const range = { from: first - 1, to: last, onlyUndelivered: true };
  return { id: await startReplay(ctx, author(ctx, caller), subscriber, range) };
}

export const deliveryHandlers: ApiHandlers<Endpoints> = {
  'GET /bus/subscriber/deliveries': async ({ query, caller }, ctx) =>
    listAttempts(ctx, await ownSubscriber(ctx, caller), query),
  'GET /bus/subscribers/{id}/deliveries': async ({ params, query }, ctx) =>
    listAttempts(ctx, await namedSubscriber(ctx, params.id), query),
  'GET /bus/dead_letters': async ({ query, caller }, ctx) => {
    const scope = await scopeOf(ctx, caller, query.subscriber);
    const before = parseCursor(query.cursor, uuidCursor);
    const rows = await listLetters(ctx.db, { subscriber: scope?.id, before, limit: query.limit + 1 });
    return cutPage(rows, query.limit, renderLetter, cursorOf);
  },
  'GET /bus/dead_letters/{id}': async ({ params, caller }, ctx) => {
    const letter = renderLetter(await readLetter(ctx, caller, params.id));
    const body = await readLetterBody(ctx.db, params.id, maxShownChars);
    if (body === undefined) return { ...letter, body: null, complete: true };
    const complete = body.chars <= maxShownChars;
    const head = JSON.stringify({ ...letter, complete }).slice(0, -1);
    // the events are JSON already
    const events = complete ? body.beginning : cutArray(body.beginning);
    return new Response(`${head},"body":${events}}`, { headers: { 'content-type': 'application/json' } });
  },
  'DELETE /bus/dead_letters': removeLetters,
  'DELETE /bus/dead_letters/{id}': removeLetter,
  'POST /bus/dead_letters/replay': replayLetters,
  'POST /bus/dead_letters/{id}/replay': replayLetter,
};
