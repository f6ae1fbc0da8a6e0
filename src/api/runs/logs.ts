/**
 * A run's output as plain text, both streams in the order they were written, hand-outs one after the other. Followed, it
 * goes on until the run is final: a worker's last chunk is stored before the final state can be seen, so whoever sees
 * the run final before reading has read everything.
 */
import { hangBell, type HungBell } from '../../events/bell.ts';
import { pause } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import type { ApiContext, ApiHandlers } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import { findLogPlace, isLive, type LogPosition, readLog } from './log-queries.ts';
import { knownRun } from './handlers.ts';
import { streamOf } from '../live/streaming.ts';

const sweepMs = 1_000;
/** Wake-ups are the tenant's, not the run's: a busy tenant must not make each follower ask without a break. */
const gatherMs = 25;
const start: LogPosition = { lease: -1, number: -1 };

type Chunks<R> = AsyncGenerator<Uint8Array, R, undefined>;

/** Everything there is after a position; returns how far it came. */
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

async function* followLog(db: Db, run: string, from: LogPosition, bell: HungBell, signal: AbortSignal): Chunks<void> {
  let position = from;
  try {
    while (!signal.aborted) {
      const live = await isLive(db, run);
      position = yield* readOn(db, run, position);
      if (!live) return;
      await bell.wait(sweepMs, signal);
      await pause(gatherMs, signal);
    }
  } finally {
    bell.close();
  }
}

interface Asked {
  readonly follow: boolean;
  /** In bytes: what a reader has already. */
  readonly from: number;
}

async function* chunksOf(ctx: ApiContext, run: string, { follow, from }: Asked, signal: AbortSignal): Chunks<void> {
  const place = from === 0 ? undefined : await findLogPlace(ctx.db, run, from);
  const known = from - (place?.end ?? 0);
  const chunks = follow
    ? // the end of a run is an event; new output is not
      followLog(ctx.db, run, place ?? start, hangBell(ctx.hints, ['logs', 'events']), signal)
    : readOn(ctx.db, run, place ?? start);
  yield* without(chunks, known);
}

/** All but the first bytes. */
async function* without(chunks: Chunks<unknown>, bytes: number): Chunks<void> {
  let left = bytes;
  for await (const chunk of chunks) {
    if (chunk.length > left) yield chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
  }
}

export const logHandlers: ApiHandlers<Pick<typeof runEndpoints, 'GET /api/runs/{id}/logs'>> = {
  'GET /api/runs/{id}/logs': async ({ params, query }, ctx) => {
    const { id } = await knownRun(ctx, params.id);
    const body = streamOf(
      (signal) => chunksOf(ctx, id, query, signal),
      (error) => ctx.log.warn({ err: error, run: id }, 'a log could not be sent to its end'),
    );
    return new Response(body, {
      headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    });
  },
};
