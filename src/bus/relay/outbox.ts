/**
 * Copies events that `millrace.publish()` has put into the outbox to the bus log. The scheduler of the tenant does it, so events
 * arrive in the log whether or not anybody subscribes to them.
 *
 * 1. Copies and the removal of their rows are one commit. So each event is copied once, by however many processes, and in order.
 * 2. A topic that no publisher owns becomes the database's: keys get `topic claimed` from then on. SQL may publish to the topics
 *    of others as well, because rights in the database decide who may call `millrace.publish()`.
 */
import type { EngineContext } from '../../contract/context.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { checkpoint } from './checkpoints.ts';
import { keyHash } from '../publish/key-hash.ts';
import { eventsPublished } from '../telemetry.ts';
import { renderOutbox } from './elements.ts';
import { appendCopies, hasOutbox, takeOutbox } from './queries.ts';

/** Events of one commit. Publishers wait for the lock of the bus log meanwhile. */
const pageSize = 500;

/** The owner of topics that SQL has published first. No key has this identity. */
export const databaseOwner = { id: '00000000-0000-0000-0000-000000000000', name: 'database' } as const;

/** Copies the oldest events of the outbox. Returns whether more may follow. */
export async function copyOutbox(ctx: EngineContext, db: Db): Promise<boolean> {
  if (!(await hasOutbox(db))) return false;
  const page = await db.transaction((tx) => copyPage(tx, new Date(ctx.time.now())));
  if (page.events === 0) return false;
  checkpoint('outbox.copied');
  ctx.hints.send('bus');
  eventsPublished.emit(ctx.telemetry, { tenant: ctx.tenant.id, ...page });
  return page.events === pageSize;
}

async function copyPage(tx: Db, now: Date): Promise<{ events: number; bytes: number }> {
  const rows = await takeOutbox(tx, pageSize);
  if (rows.length === 0) return { events: 0, bytes: 0 };
  checkpoint('outbox.read');
  const topics = await claimTopics(tx, [...new Set(rows.map(({ topic }) => topic))], now);
  const copied = rows.map((row) => ({
    topicId: topics.get(row.topic) ?? 0,
    keyHash: keyHash(row.key ?? row.url),
    body: renderOutbox(row),
  }));
  await appendCopies(tx, copied, now);
  return { events: copied.length, bytes: copied.reduce((sum, { body }) => sum + body.length, 0) };
}

/** Creates and claims topics without an owner. Locks all of them until the commit, so none is deleted meanwhile. */
async function claimTopics(tx: Db, names: readonly string[], now: Date): Promise<ReadonlyMap<string, number>> {
  const each = (value: string): string[] => names.map(() => value);
  await tx.exec(sql`
    select claim_bus_topics(
      ${names}::text[], ${each(databaseOwner.id)}::uuid[], ${each(databaseOwner.name)}::text[], ${now}::timestamptz)`);
  const rows = await tx.rows<{ id: number; name: string }>(sql`
    select id, name from bus_topic where name = any (${names}::text[]) and deleted_at is null`);
  return new Map(rows.map(({ id, name }) => [name, id]));
}
