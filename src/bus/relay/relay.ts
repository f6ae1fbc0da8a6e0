/**
 * The relay: copies events of the lifecycle log into the bus log. (The outbox of `millrace.publish()` is copied by the scheduler,
 * see outbox.ts.)
 *
 * 1. Copies and the new position are one commit. So each event is copied once, by however many relays.
 * 2. A lifecycle event is copied if a subscriber has its topic at that moment.
 */
import type { CourierContext } from '../../contract/bus.ts';
import type { Errands, HeldErrand } from '../../errands/contract.ts';
import type { Db } from '../../kernel/sql.ts';
import { checkpoint } from '../checkpoints.ts';
import { keyHash } from '../publish/key-hash.ts';
import { eventsPublished } from '../telemetry.ts';
import { renderLifecycle } from './elements.ts';
import {
  appendCopies,
  beginRelay,
  type CopiedEvent,
  endRelay,
  findRelayNeed,
  lockPosition,
  movePosition,
  readFollowed,
  readLifecycle,
} from './queries.ts';

/** Events of one commit. Publishers wait for the lock of the bus log meanwhile. */
const pageSize = 500;

interface RelayParts {
  readonly ctx: CourierContext;
  readonly db: Db;
  readonly errands: Errands;
}

interface Page {
  readonly copied: readonly CopiedEvent[];
  readonly hasMore: boolean;
}

/** Copies everything that is there. `kept`: it was told to stop before that. */
export async function runRelay(
  { ctx, db, errands }: RelayParts,
  { key, lease }: HeldErrand,
  signals: { readonly quiet: AbortSignal; readonly abort: AbortSignal },
): Promise<'over' | 'kept'> {
  for (let hasMore = true; hasMore; ) {
    if (signals.quiet.aborted || signals.abort.aborted) return 'kept';
    const page = await copyLifecycle(ctx, db);
    if (page.copied.length > 0) checkpoint('relay.copied');
    announce(ctx, page.copied);
    hasMore = page.hasMore;
  }
  await errands.ack('aux', ctx.courier.id, [{ key, lease }]);
  checkpoint('relay.ended');
  // what was committed since the last page: its own errand met the one that has just ended
  const { isNeeded } = await findRelayNeed(db);
  if (isNeeded) ctx.hints.send('bus');
  return 'over';
}

function announce(ctx: CourierContext, copied: readonly CopiedEvent[]): void {
  if (copied.length === 0) return;
  ctx.hints.send('bus');
  const bytes = copied.reduce((sum, { body }) => sum + body.length, 0);
  eventsPublished.emit(ctx.telemetry, { tenant: ctx.tenant.id, events: copied.length, bytes });
}

function copyLifecycle(ctx: CourierContext, db: Db): Promise<Page> {
  return db.transaction(async (tx) => {
    const now = new Date(ctx.time.now());
    const position = await lockPosition(tx);
    const topics = await readFollowed(tx);
    const nothing = { copied: [], hasMore: false };
    if (topics.size === 0) {
      if (position !== undefined) await endRelay(tx);
      return nothing;
    }
    if (position === undefined) {
      await beginRelay(tx, now);
      return nothing;
    }
    const { rows, last, isFull } = await readLifecycle(tx, position, [...topics.keys()], pageSize);
    if (last === null) return nothing;
    if (rows.length > 0) checkpoint('relay.followed');
    await movePosition(tx, last, now);
    const copied = rows.map((row) => {
      const { url, body } = renderLifecycle(row, ctx.settings.publicUrl);
      return { topicId: topics.get(row.topic) ?? 0, keyHash: keyHash(url), body };
    });
    if (copied.length > 0) await appendCopies(tx, copied, now);
    return { copied, hasMore: isFull };
  });
}
