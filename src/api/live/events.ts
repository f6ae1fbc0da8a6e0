/**
 * Sends the event log as server-sent events: `id` is the number of the event, `data` is the event on one line. The messages
 * have no name, because a browser delivers a named message only to listeners of that name. A reader resumes with
 * `Last-Event-ID` or `after`; a new reader begins at the newest event.
 */
import { MillraceError } from '../../errors.ts';
import { follow } from '../../events/follow.ts';
import { findTopic, type LoggedEvent, newestPosition } from '../../events/queries.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import { requireFound } from '../context.ts';
import type { runEndpoints } from '../runs/endpoints.ts';
import { streamOf } from './streaming.ts';

export const heartbeatMs = 15_000;
/** Sent at once, so that proxies and clients see an open stream. `retry` is the delay before a reconnection. */
export const greeting = ': following\nretry: 1000\n\n';
export const heartbeat = ':\n\n';

export function frame(event: LoggedEvent): string {
  const data = { ...event, at: event.at.toISOString(), body: parseBody(event.body) };
  return `id: ${event.seq}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A body that is not JSON is sent as text. */
function parseBody(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

/** Encodes pages as frames. An empty page becomes a heartbeat if nothing was sent for `quietMs`. */
export async function* frames(
  pages: AsyncIterable<readonly LoggedEvent[]>,
  quietMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  yield encoder.encode(greeting);
  let sentAt = performance.now();
  for await (const page of pages) {
    if (page.length === 0 && performance.now() - sentAt < quietMs) continue;
    sentAt = performance.now();
    yield encoder.encode(page.length === 0 ? heartbeat : page.map(frame).join(''));
  }
}

/** The header overrides `after`, because a browser that reconnects sends the header with its first URL. */
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
    (error) => ctx.log.warn({ err: error }, 'event stream failed'),
  );
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  });
}

/** If the tenant is closed in this process (for an upgrade, for example), the stream ends, and the reader reconnects. */
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
    const topicId = topic === undefined ? undefined : requireFound(await findTopic(ctx.db, topic), 'topic', topic);
    const after = startOf(request, query.after) ?? (await newestPosition(ctx.db));
    return eventStream(ctx, (signal) => frames(follow(ctx, { after, topicId, signal }), heartbeatMs));
  },
};
