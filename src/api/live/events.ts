/**
 * The event log as server-sent events: `id` is the event's number, `data` all of it on one line. The messages have no
 * name, since a browser hands named ones only to who asked for that very name. A reader goes on where it stopped, by
 * `Last-Event-ID` or `after`; a new one begins at the newest.
 */
import { MillraceError } from '../../errors.ts';
import { follow } from '../../events/follow.ts';
import { findTopic, type LoggedEvent, newestPosition } from '../../events/queries.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import { found } from '../context.ts';
import type { runEndpoints } from '../runs/endpoints.ts';
import { streamOf } from './streaming.ts';

export const heartbeatMs = 15_000;
/** Told at once, so that proxies and clients see that the stream is open; and how soon to come back if it breaks. */
export const greeting = ': following\nretry: 1000\n\n';
export const heartbeat = ':\n\n';

export function frame(event: LoggedEvent): string {
  const data = { ...event, at: event.at.toISOString(), body: parsed(event.body) };
  return `id: ${event.seq}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** What is not JSON is passed on as text. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

/** Frames from pages; an empty page gives a comment when nothing has been said for long. */
export async function* frames(
  pages: AsyncIterable<readonly LoggedEvent[]>,
  quietMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  yield encoder.encode(greeting);
  let spokenAt = performance.now();
  for await (const page of pages) {
    if (page.length === 0 && performance.now() - spokenAt < quietMs) continue;
    spokenAt = performance.now();
    yield encoder.encode(page.length === 0 ? heartbeat : page.map(frame).join(''));
  }
}

/** The header wins: a browser that reconnects sends it with the address it began with. */
export function startOf(request: Request, after: number | undefined): number | undefined {
  const header = request.headers.get('last-event-id') ?? '';
  if (header === '') return after;
  if (/^\d{1,15}$/.test(header)) return Number(header);
  const fault = { path: 'headers.last-event-id', message: 'is not the number of an event' };
  throw new MillraceError('bad_request', `${fault.path}: ${fault.message}`, { faults: [fault] });
}

export function eventStream(
  ctx: ApiContext,
  chunks: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void, undefined>,
): Response {
  const body = streamOf(
    (signal) => whileOpen(ctx, chunks(signal)),
    (error) => ctx.log.warn({ err: error }, 'an event stream broke off'),
  );
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  });
}

/** Where the tenant is closed here, to be upgraded say, the stream just ends: its reader comes back, and is served anew. */
async function* whileOpen(
  { pool }: ApiContext,
  chunks: AsyncGenerator<Uint8Array, void, undefined>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* chunks;
  } catch (error) {
    if (!pool.ending) throw error;
  }
}

export const eventHandlers: ApiHandlers<Pick<typeof runEndpoints, 'GET /api/events'>> = {
  'GET /api/events': async ({ query, request }, ctx) => {
    const { topic } = query;
    const topicId = topic === undefined ? undefined : found(await findTopic(ctx.db, topic), 'topic', topic);
    const after = startOf(request, query.after) ?? (await newestPosition(ctx.db));
    return eventStream(ctx, (signal) => frames(follow(ctx, { after, topicId, signal }), heartbeatMs));
  },
};
