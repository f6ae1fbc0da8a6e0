/** Statements about errands for people: pages by queue and key, and the names of the subscribers that they work for. */
import type { ErrandQueue, ErrandState } from '../../errands/contract.ts';
import { holdOf, pendingErrands, displayedState } from '../../errands/displayed.ts';
import { allOf, type Db, type Sql, sql } from '../../kernel/sql.ts';

export type ErrandRow = {
  readonly queue: ErrandQueue;
  readonly key: string;
  readonly state: 's' | 'r' | 'p' | 'x';
  readonly run_at: Date | null;
  readonly worker: string | null;
  readonly taken_at: Date | null;
  readonly losses: number;
  readonly attempts: number;
  readonly reason: string | null;
};

/** The letters of states in the table. */
export const stateLetters: Readonly<Record<ErrandState, ErrandRow['state']>> = {
  scheduled: 's',
  ready: 'r',
  pending: 'p',
  poisoned: 'x',
};

export interface ErrandPage {
  readonly queue: ErrandQueue | undefined;
  readonly state: ErrandState | undefined;
  /** The last errand of the page before. */
  readonly after: { readonly queue: string; readonly key: string } | undefined;
  readonly limit: number;
}

export function listErrands(db: Db, { queue, state, after, limit }: ErrandPage): Promise<ErrandRow[]> {
  const conditions: Sql[] = [];
  if (queue !== undefined) conditions.push(sql`e.queue = ${queue}`);
  if (state === 'ready') conditions.push(sql`h.worker is null`);
  if (state !== undefined) conditions.push(sql`e.state = ${state === 'pending' ? 'r' : stateLetters[state]}::"char"`);
  if (after !== undefined) conditions.push(sql`(e.queue, e.key) > (${after.queue}::text, ${after.key}::text)`);
  return db.rows<ErrandRow>(sql`
    select e.queue, e.key, ${displayedState} as state, e.run_at, h.worker, h.taken_at, e.losses, e.attempts, e.reason
      from ${state === 'pending' ? pendingErrands : sql`errand e left join lateral (${holdOf}) as h on true`}
     where ${allOf(conditions)}
     order by e.queue, e.key
     limit ${limit}`);
}

/** Names of subscribers by the id of the subscriber or of one of its replays. */
export async function subscriberNames(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const rows = await db.rows<{ id: string; name: string }>(sql`
    select id, name from subscriber where id = any (${ids}::uuid[])
    union all
    select r.id, s.name from replay r join subscriber s on s.id = r.subscriber_id where r.id = any (${ids}::uuid[])`);
  return new Map(rows.map(({ id, name }) => [id, name]));
}
