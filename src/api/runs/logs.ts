/**
 * The output of a run as plain text: both streams in the order they were written, hand-outs one after another. With `follow`,
 * the response continues until the run has ended. The last chunk is stored before the final state becomes visible. So a reader
 * that sees the final state before it reads gets everything.
 */
import { makeHintBell, type HintBell } from '../../events/bell.ts';
import { pause } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import { findLogPlace, isLive, type LogPosition, readLog } from './log-queries.ts';
import { requireRun } from './handlers.ts';
import { streamOf } from '../live/streaming.ts';

const sweepMs = 1_000;
/** Pause after a wake-up. Wake-ups come from the whole tenant, so without it followers of a busy tenant would poll nonstop. */
const minPollMs = 25;
const start: LogPosition = { lease: -1, number: -1 };

type Chunks<R> = AsyncGenerator<Uint8Array, R, undefined>;

/** Yields all output after a position, and returns the new position. */
async function* readOn(db: Db, run: string, after: LogPosition): Chunks<LogPosition> {
  let position = after;
  for (;;) {
    const rows = await readLog(db, run, position);
    const last = rows.at(-1);
    if (last === undefined) return position;
    position = last;
    yield Buffer.concat(rows.map((row) => row.data));
  }
}

async function* followLog(db: Db, run: string, from: LogPosition, bell: HintBell, signal: AbortSignal): Chunks<void> {
  let position = from;
  try {
    while (!signal.aborted) {
      const live = await isLive(db, run);
      position = yield* readOn(db, run, position);
      if (!live) return;
      await bell.wait(sweepMs, signal);
      await pause(minPollMs, signal);
    }
  } finally {
    bell.close();
  }
}

interface Asked {
  readonly follow: boolean;
  /** Bytes that the reader already has. */
  readonly from: number;
}

async function* chunksOf(ctx: ApiContext, run: string, { follow, from }: Asked, signal: AbortSignal): Chunks<void> {
  const place = from === 0 ? undefined : await findLogPlace(ctx.db, run, from);
  const known = from - (place?.end ?? 0);
  const chunks = follow
    ? // 'events' wakes at the end of the run, 'logs' at new output
      followLog(ctx.db, run, place ?? start, makeHintBell(ctx.hints, ['logs', 'events']), signal)
    : readOn(ctx.db, run, place ?? start);
  yield* skipBytes(chunks, known);
}

/** Skips the first bytes. */
async function* skipBytes(chunks: Chunks<unknown>, bytes: number): Chunks<void> {
  let left = bytes;
  for await (const chunk of chunks) {
    if (chunk.length > left) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

export const logHandlers: ApiHandlers<Pick<typeof runEndpoints, 'GET /api/runs/{id}/logs'>> = {
  'GET /api/runs/{id}/logs': async ({ params, query }, ctx) => {
    const { id } = await requireRun(ctx, params.id);
    const body = streamOf(
      (signal) => chunksOf(ctx, id, query, signal),
      (error) => ctx.log.warn({ err: error, run: id }, 'sending a log failed'),
    );
    return new Response(body, {
      headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    });
  },
};
