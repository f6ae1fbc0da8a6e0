/**
 * Errands of a subscriber. They are written in the transaction of the change that needs them, so no change is left without its
 * work, and no work without its change.
 *
 * Locks: the queue of errands (only to remove idle ones), then errand by key. The caller has locked bus_state and the readers before.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { replayKey, testKey } from '../errand-keys.ts';

/** Locks the readers, before errands. Returns the keys of their errands. */
export async function lockReaders(tx: Db, subscriber: string): Promise<string[]> {
  const rows = await tx.rows<{ key: string }>(sql`
    select deliver_key(subscriber_id, strand) as key
      from reader
     where subscriber_id = ${subscriber}
     order by strand
       for update`);
  return rows.map(({ key }) => key);
}

/**
 * Adds errands that do not exist yet. Those that wait for their time, or were set aside, become ready. A pending one is marked,
 * because its courier may have looked for work before this commit; so is a ready one, because a courier may take it before.
 */
export async function pushErrands(tx: Db, queue: 'main' | 'aux', keys: readonly string[]): Promise<void> {
  await tx.exec(sql`
    insert into errand as e (queue, key)
    select ${queue}::text, key from unnest(${keys.toSorted()}::text[]) as key
    on conflict (queue, key) do update
       set state = 'r', again = e.state = 'r', run_at = null, id = case when e.state = 'r' then e.id else excluded.id end,
           losses = 0, reason = null
     where e.state <> 'r' or not e.again`);
}

/** Deliveries of all strands that have events, and running replays. */
export async function pushDeliveries(tx: Db, subscriber: string): Promise<void> {
  const rows = await tx.rows<{ key: string }>(sql`
    select deliver_key(subscriber_id, strand) as key from reader where subscriber_id = ${subscriber} and queued > 0`);
  const replays = await lockReplays(tx, subscriber);
  await pushErrands(tx, 'main', [...rows.map(({ key }) => key), ...replays]);
}

/** Locks the running replays, before errands. Returns the keys of their errands. */
async function lockReplays(tx: Db, subscriber: string): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    select id from replay where subscriber_id = ${subscriber} and state = 'running' order by id for update`);
  return rows.map(({ id }) => replayKey(id));
}

/**
 * Removes the errands that no courier holds. A delivery under way is finished: a courier whose subscriber is paused meanwhile
 * stops after it.
 */
export async function removeIdleErrands(tx: Db, keys: readonly string[]): Promise<void> {
  await tx.exec(sql`select lock_errand_queue('main')`);
  await tx.exec(sql`
    delete from errand e
     where e.queue = 'main' and e.key = any (${keys}::text[])
       and (e.state <> 'r' or not exists (select from errand_hold h where h.queue = 'main' and e.id <@ h.ids))`);
}

/**
 * Takes the errands away from couriers: what they still write has no effect, because their holds name other numbers.
 */
export async function revokeErrands(tx: Db, keys: readonly string[]): Promise<void> {
  await tx.exec(sql`
    update errand
       set state = 'r', run_at = null, unnamed_at = null, again = false, id = nextval('errand_seq'), losses = 0,
           attempts = 0, reason = null
     where queue = 'main' and key = any (${keys}::text[])`);
}

/** Removes all errands of a subscriber that is being deleted. */
export async function removeErrands(tx: Db, subscriber: string, deliveries: readonly string[]): Promise<void> {
  const main = [...deliveries, ...(await lockReplays(tx, subscriber))];
  await tx.exec(sql`
    delete from errand
     where queue = 'main' and key = any (${main}::text[])
        or queue = 'aux' and key = ${testKey(subscriber)}`);
}
