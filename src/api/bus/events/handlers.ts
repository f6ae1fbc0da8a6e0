/**
 * Reads the bus log by number: a page, a long poll, or a stream. Nothing is acknowledged, so the reader keeps its own position. An
 * event for one subscriber is shown only to that subscriber's key.
 */
import { readPage, readTopics } from '../../../bus/postgres/log-queries.ts';
import { findByIdentity } from '../../../bus/subscribers/queries.ts';
import type { BusEvent } from '../../../bus/store.ts';
import type { Caller } from '../../../contract/roles.ts';
import { makeHintBell } from '../../../events/bell.ts';
import type { Input } from '../../../http/endpoint.ts';
import { type Db, sql } from '../../../kernel/sql.ts';
import type { ApiContext, ApiHandlers } from '../../context.ts';
import { eventStream, greeting, heartbeat, heartbeatMs, startOf } from '../../live/events.ts';
import { WaitingRequests } from '../../live/waiting.ts';
import { readHead } from '../replays/queries.ts';
import type { eventEndpoints } from './endpoints.ts';

/** Between two looks, if no wake-up comes. */
const sweepMs = 1_000;
const pageBytes = 1024 * 1024;

interface Scope {
  /** Undefined: all topics. */
  readonly topics: readonly string[] | undefined;
  /** The caller's own subscriber. */
  readonly subscriber: string | undefined;
  readonly limit: number;
}

interface LogPage {
  readonly events: readonly BusEvent[];
  /** All events up to here were looked at. */
  readonly lookedTo: number;
}

async function readLog(db: Db, scope: Scope, after: number): Promise<LogPage> {
  const to = await readHead(db);
  if (after >= to) return { events: [], lookedTo: after };
  const limits = { events: scope.limit, bytes: pageBytes };
  const page =
    scope.topics === undefined
      ? await readAll(db, after, to, limits)
      : await readSome(db, scope.topics, after, to, limits);
  const events = page.events.filter(({ target }) => target === null || target === scope.subscriber);
  return { events, lookedTo: page.lookedTo };
}

async function readAll(db: Db, after: number, to: number, limits: { events: number; bytes: number }): Promise<LogPage> {
  const events = await readPage(db, after, to, limits);
  return { events, lookedTo: events.at(-1)?.seq ?? to };
}

/** A topic that does not exist yet has no events; it is looked up each time. */
async function readSome(
  db: Db,
  names: readonly string[],
  after: number,
  to: number,
  limits: { events: number; bytes: number },
): Promise<LogPage> {
  const rows = await db.rows<{ id: number }>(sql`
    select id from bus_topic where name = any (${names}::text[]) and deleted_at is null`);
  const topics = rows.map(({ id }) => id);
  return topics.length === 0 ? { events: [], lookedTo: to } : readTopics(db, { after, to, topics }, limits);
}

/** Yields pages as they come, until the signal aborts. An empty page: nothing came for a while. */
async function* followLog(ctx: ApiContext, scope: Scope, start: number, signal: AbortSignal): AsyncGenerator<LogPage> {
  const bell = makeHintBell(ctx.hints, ['bus']);
  try {
    for (let after = start; !signal.aborted; ) {
      const page = await readLog(ctx.db, scope, after);
      const isEnd = page.lookedTo === after;
      after = page.lookedTo;
      if (page.events.length > 0) yield page;
      else if (isEnd && !(await bell.wait(sweepMs, signal))) yield page;
    }
  } finally {
    bell.close();
  }
}

async function* frames(pages: AsyncIterable<LogPage>): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  yield encoder.encode(greeting);
  let sentAt = performance.now();
  for await (const { events } of pages) {
    if (events.length === 0 && performance.now() - sentAt < heartbeatMs) continue;
    sentAt = performance.now();
    const text = events.map(({ seq, body }) => `id: ${seq}\ndata: ${body}\n\n`).join('');
    yield encoder.encode(events.length === 0 ? heartbeat : text);
  }
}

async function readPageOf(ctx: ApiContext, scope: Scope, start: number, waitMs: number, signal: AbortSignal) {
  const done = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, waitMs))]);
  let page = await readLog(ctx.db, scope, start);
  if (page.events.length === 0 && waitMs > 0) {
    for await (const next of followLog(ctx, scope, page.lookedTo, done)) {
      page = next;
      if (next.events.length > 0) break;
    }
  }
  // the bodies are JSON already
  const text = `{"items":[${page.events.map(({ body }) => body).join(',')}],"next":"${page.lookedTo}"}`;
  return new Response(text, { headers: { 'content-type': 'application/json' } });
}

async function subscriberOf(ctx: ApiContext, caller: Caller | undefined): Promise<string | undefined> {
  if (caller?.kind !== 'key' || caller.identity === undefined) return undefined;
  return (await findByIdentity(ctx.db, caller.identity.id))?.id;
}

const waiting = new WaitingRequests();

async function read(input: Input<(typeof eventEndpoints)['GET /bus/events']>, ctx: ApiContext): Promise<Response> {
  const { query, request, caller, signal } = input;
  const scope = { topics: query.topics, subscriber: await subscriberOf(ctx, caller), limit: query.limit };
  const after = startOf(request, query.after === undefined ? undefined : Number(query.after));
  if (request.headers.get('accept')?.includes('text/event-stream') === true) {
    const start = after ?? (await readHead(ctx.db));
    return eventStream(ctx, (gone) => frames(followLog(ctx, scope, start, gone)));
  }
  const readOnce = () => readPageOf(ctx, scope, after ?? 0, query.wait * 1_000, signal);
  return query.wait === 0 ? readOnce() : waiting.during(caller, readOnce);
}

export const busEventHandlers: ApiHandlers<typeof eventEndpoints> = { 'GET /bus/events': read };
