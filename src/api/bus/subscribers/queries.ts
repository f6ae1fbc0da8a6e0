/** Statements that read subscribers with their subscription and how far they have come. */
import { holdOf, displayedState } from '../../../errands/displayed.ts';
import { type Db, type Sql, sql } from '../../../kernel/sql.ts';

export type ListedRow = {
  readonly id: string;
  readonly subscriber: string;
  readonly identity: string;
  readonly credential: Buffer | null;
  readonly callback: string | null;
  readonly kind: 'http' | 'pull';
  readonly state: 'active' | 'paused' | 'disabled';
  readonly reason: string | null;
  readonly health: number;
  readonly max_events: number;
  readonly timeout: number;
  readonly topics: string[];
  readonly sent: number;
  readonly queued: number;
  readonly oldest: Date | null;
  readonly failing_since: Date | null;
  readonly next_attempt_at: Date | null;
};

export type DetailRow = ListedRow & {
  readonly filter: Record<string, unknown> | null;
  readonly max_bytes: number;
  readonly quiet: boolean;
  readonly ordering: 'subscriber' | 'key';
  readonly strands: number;
  readonly rate: number | null;
  readonly max_attempts: number | null;
  readonly max_age: number | null;
  readonly request_timeout: number | null;
  readonly secrets: number;
  readonly created_at: Date;
  readonly last_attempted_at: Date | null;
  readonly dead_letters: number;
  readonly dropped: DroppedEvents | null;
};

export interface DroppedEvents {
  readonly events: number;
  readonly first: string;
  readonly last: string;
  readonly at: string;
}

const listed = sql`
  s.id, s.name as subscriber, s.identity, s.credential, s.callback, s.kind, s.state,
  coalesce(s.reason, next.reason) as reason, s.health, terms.max_events,
  terms.window_ms as timeout, topics.names as topics, progress.sent, progress.queued, progress.oldest,
  s.first_failed_at as failing_since, next.run_at as next_attempt_at`;

/** A subscriber has at least one revision and one reader. A deleted topic is no longer subscribed to. */
const joined = sql`
    from subscriber s
    join lateral (
      select * from subscription where subscriber_id = s.id order by from_seq desc limit 1) as terms on true
    cross join lateral (
      select coalesce(array_agg(name order by name), '{}') as names
        from bus_topic
       where id = any (terms.topics) and deleted_at is null) as topics
    cross join lateral (
      select coalesce(sum(sent), 0)::bigint as sent, coalesce(sum(queued), 0)::bigint as queued, min(oldest_at) as oldest
        from reader
       where subscriber_id = s.id) as progress
    cross join lateral (
      select min(e.run_at) as run_at, (array_agg(e.reason order by e.run_at) filter (where e.reason is not null))[1] as reason
        from reader r
        join errand e on e.queue = 'main' and e.key = deliver_key(r.subscriber_id, r.strand) and e.state = 's'
       where r.subscriber_id = s.id) as next`;

export function listSubscribers(db: Db, page: { after: string | undefined; limit: number }): Promise<ListedRow[]> {
  const further: Sql = page.after === undefined ? sql`true` : sql`s.name > ${page.after}`;
  return db.rows<ListedRow>(sql`
    select ${listed} ${joined}
     where ${further}
     order by s.name
     limit ${page.limit}`);
}

/** One object about all that the limit by bytes has dropped for a subscriber; null: nothing. */
export const droppedOf = (subscriber: Sql): Sql => sql`
  (select json_build_object(
            'events', sum(events), 'first', min(first_seq)::text, 'last', max(last_seq)::text, 'at', max(at))
     from dead_letter
    where subscriber_id = ${subscriber} and code = 'dropped'
   having count(*) > 0)`;

export function readDetail(db: Db, id: string): Promise<DetailRow | undefined> {
  return db.maybeOne<DetailRow>(sql`
    select ${listed}, terms.filter, terms.max_bytes, terms.quiet, terms.ordering, terms.strands, s.rate, s.max_attempts,
           s.max_age_ms as max_age, s.request_ms as request_timeout, cardinality(s.secrets) as secrets, s.created_at,
           s.last_attempted_at,
           (select count(*)::integer from dead_letter where subscriber_id = s.id) as dead_letters, ${droppedOf(sql`s.id`)} as dropped
           ${joined}
     where s.id = ${id}`);
}

export type ReaderRow = {
  readonly strand: number;
  readonly pos: number;
  readonly queued: number;
  readonly oldest_at: Date | null;
  readonly attempts: number;
  readonly sent: number;
  readonly leased_until: Date | null;
  readonly errand: 's' | 'r' | 'p' | 'x' | null;
  readonly run_at: Date | null;
  readonly errand_reason: string | null;
};

export function readReaders(db: Db, subscriber: string): Promise<ReaderRow[]> {
  return db.rows<ReaderRow>(sql`
    select r.strand, r.pos, r.queued, r.oldest_at, r.attempts, r.sent, r.leased_until, ${displayedState} as errand, e.run_at,
           e.reason as errand_reason
      from reader r
      left join errand e on e.queue = 'main' and e.key = deliver_key(r.subscriber_id, r.strand)
      left join lateral (${holdOf}) as h on true
     where r.subscriber_id = ${subscriber}
     order by r.strand`);
}
