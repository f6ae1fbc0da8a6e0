/**
 * Sends digests of changes as server-sent events: `id` is the reader's position in the event log, `data` is a digest. At most
 * four are sent per second, so a browser can follow a tenant that ends thousands of runs per second. After a lost connection
 * it resumes by position.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type ChangeWatch, watchOf } from './change-watch.ts';
import type { ApiHandlers } from '../context.ts';
import type { runEndpoints } from '../runs/endpoints.ts';
import { eventStream, greeting, heartbeat, heartbeatMs, startOf } from './events.ts';

const paceMs = 250;

async function* digests(
  watch: ChangeWatch,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  const follower = await watch.follow(after);
  try {
    // send the position at once, so that a reader can resume even if it is disconnected before the first change
    yield encoder.encode(`${greeting}id: ${after ?? follower.position}\ndata: {}\n\n`);
    while (!signal.aborted) {
      await follower.bell.wait(heartbeatMs, signal);
      const digest = follower.take();
      yield encoder.encode(
        digest.isEmpty ? heartbeat : `id: ${follower.position}\ndata: ${JSON.stringify(digest.message())}\n\n`,
      );
      await pause(paceMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    watch.leave(follower);
  }
}

export const changeHandlers: ApiHandlers<Pick<typeof runEndpoints, 'GET /api/changes'>> = {
  'GET /api/changes': async ({ query, request }, ctx) => {
    const after = startOf(request, query.after);
    return eventStream(ctx, (signal) => digests(watchOf(ctx), after, signal));
  },
};
