/**
 * Follows the event log: reads page after page by position, then waits for a wake-up. A slow sweep finds events whose wake-up
 * was lost. Nothing is read ahead of the consumer, so a slow consumer delays only itself.
 */
import type { Hints } from '../contract/channels.ts';
import type { Db } from '../kernel/sql.ts';
import { makeHintBell } from './bell.ts';
import { type LoggedEvent, readEvents } from './queries.ts';

export interface FollowedLog {
  readonly db: Db;
  readonly hints: Hints;
}

export interface FollowOptions {
  /** The position to continue from, exclusive. */
  readonly after: number;
  /** Only events of this topic. */
  readonly topicId?: number | undefined;
  readonly signal: AbortSignal;
  readonly pageSize?: number;
  readonly sweepMs?: number;
}

/**
 * Yields pages of events in order, until the signal aborts. An empty page means that a whole sweep found nothing: the consumer
 * can send a heartbeat or record its position. A failed read throws; the consumer may follow again from its last event.
 */
export async function* follow(
  log: FollowedLog,
  options: FollowOptions,
): AsyncGenerator<readonly LoggedEvent[], void, undefined> {
  const { topicId, signal, pageSize = 500, sweepMs = 1_000 } = options;
  const bell = makeHintBell(log.hints, ['events']);
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
