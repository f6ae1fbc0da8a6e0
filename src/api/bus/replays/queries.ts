/** Statements that read replays, newest first. */
import { type Db, sql } from '../../../kernel/sql.ts';

export type ReplayRow = {
  readonly id: string;
  readonly from_seq: number;
  readonly to_seq: number;
  readonly pos: number;
  readonly sent: number;
  readonly only_undelivered: boolean;
  readonly state: 'running' | 'done' | 'cancelled' | 'failed';
  readonly by: string;
  readonly at: Date;
};

const columns = sql`id, from_seq, to_seq, pos, sent, only_undelivered, state, by, at`;

interface ReplayPage {
  readonly subscriber: string;
  readonly before: { readonly at: Date; readonly id: string } | undefined;
  readonly limit: number;
}

export function listReplays(db: Db, { subscriber, before, limit }: ReplayPage): Promise<ReplayRow[]> {
  const further = before ? sql`(at, id) < (${before.at}::timestamptz, ${before.id}::uuid)` : sql`true`;
  return db.rows<ReplayRow>(sql`
    select ${columns} from replay
     where subscriber_id = ${subscriber} and ${further}
     order by at desc, id desc
     limit ${limit}`);
}

export function findReplay(db: Db, subscriber: string, id: string): Promise<ReplayRow | undefined> {
  return db.maybeOne<ReplayRow>(sql`
    select ${columns} from replay where id = ${id} and subscriber_id = ${subscriber}`);
}

/** The number of the newest event. */
export async function readHead(db: Db): Promise<number> {
  return (await db.one<{ head: number }>(sql`select coalesce(max(seq), 0)::bigint as head from bus_event`)).head;
}
