/**
 * Following the event log: reads page after page by position, then waits for a wake-up; a slow sweep finds what a lost
 * wake-up missed. Nothing is read ahead of its consumer, so a slow one slows only itself.
 */
import type { Hints } from '../contract/channels.ts';
import type { Db } from '../kernel/sql.ts';
import { hangBell } from './bell.ts';
import { type LoggedEvent, readEvents } from './queries.ts';

export interface FollowedLog {
  readonly db: Db;
  readonly hints: Hints;
}

export interface FollowOptions {
  /** The position to go on from, exclusive. */
  readonly after: number;
  /** Only events of this topic. */
  readonly topicId?: number | undefined;
  readonly signal: AbortSignal;
  readonly pageSize?: number;
  readonly sweepMs?: number;
}

/**
 * Pages of events in order, until the signal aborts. An empty page says that a whole sweep brought nothing: a moment for
 * heartbeats, or for recording one's position. A failed read is thrown to the consumer, which may follow anew from the
 * last event it has seen.
 */
export async function* follow(
  log: FollowedLog,
  options: FollowOptions,
): AsyncGenerator<readonly LoggedEvent[], void, undefined> {
  const { topicId, signal, pageSize = 500, sweepMs = 1_000 } = options;
  const bell = hangBell(log.hints, ['events']);
  let after = options.after;
  let quiet = false;
  try {
    while (!signal.aborted) {
      const page = await readEvents(log.db, { after, topicId, limit: pageSize });
      if (page.length > 0 || quiet) yield page;
      after = page.at(-1)?.seq ?? after;
      quiet = page.length < pageSize && !(await bell.wait(sweepMs, signal));
    }
  } finally {
    bell.close();
  }
}
