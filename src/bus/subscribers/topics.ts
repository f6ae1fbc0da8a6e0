/** The topics of subscriptions. A topic that does not exist yet is created without an owner, as in Routemaster. */
import { MillraceError } from '../../errors.ts';
import { topics as lifecycleTopics } from '../../events/append.ts';
import { type Db, sql } from '../../kernel/sql.ts';

const reserved = 'millrace_';

/** Throws for a topic of Millrace itself that does not exist: nobody can ever publish to it. */
export function checkTopics(names: readonly string[]): void {
  const unknown = names.filter((name) => name.startsWith(reserved) && !Object.hasOwn(lifecycleTopics, name));
  if (unknown.length === 0) return;
  const known = Object.keys(lifecycleTopics).join(', ');
  const message = `Millrace has no topic ${unknown.join(', ')}; its topics are ${known}`;
  const faults = [{ path: 'body.topics', message }];
  throw new MillraceError('bad_request', `bad data in payload: body.topics: ${message}`, { faults });
}

/** The ids of the topics, in order of their names. Creates those that are missing. */
export async function findOrCreateTopics(tx: Db, names: readonly string[], at: Date): Promise<number[]> {
  const wanted = [...new Set(names)].toSorted();
  await tx.exec(sql`
    insert into bus_topic (name, owner, owner_name, created_at)
    select name, null, '', ${at}::timestamptz
      from unnest(${wanted}::text[]) as name
     order by name
    on conflict (name) where deleted_at is null do nothing`);
  const rows = await tx.rows<{ id: number }>(sql`
    select id from bus_topic where name = any (${wanted}::text[]) and deleted_at is null order by name`);
  return rows.map(({ id }) => id);
}

export async function findTopicId(db: Db, name: string): Promise<number | undefined> {
  const row = await db.maybeOne<{ id: number }>(sql`
    select id from bus_topic where name = ${name} and deleted_at is null`);
  return row?.id;
}

export function includesLifecycle(names: readonly string[]): boolean {
  return names.some((name) => name.startsWith(reserved));
}
