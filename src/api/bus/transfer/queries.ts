/** Statements that export topics and subscribers. */
import { type Db, type Sql, sql } from '../../../kernel/sql.ts';

/** Topics by name, as a JSON array that the database renders: a hundred thousand would keep other requests waiting. */
export function exportTopics(db: Db, limit: number): Promise<{ count: number; json: string }> {
  return db.one(sql`
    select count(*)::integer as count, coalesce(json_agg(listed order by name), '[]')::text as json
      from (
        select name, owner, owner_name
          from bus_topic
         where deleted_at is null and name not like 'millrace\\_%'
         order by name
         limit ${limit}) as listed`);
}

const exported = (limit: number): Sql => sql`
  select s.name, s.identity, s.kind, s.callback, topics.names as topics, t.window_ms as timeout, t.max_events as max, t.filter,
         t.max_bytes, t.quiet, t.ordering, t.strands, s.rate, s.max_attempts, s.max_age_ms as max_age,
         s.request_ms as request_timeout
    from subscriber s
    join lateral (
      select * from subscription where subscriber_id = s.id order by from_seq desc limit 1) as t on true
    cross join lateral (
      select coalesce(array_agg(name order by name), '{}') as names
        from bus_topic
       where id = any (t.topics) and deleted_at is null) as topics
   order by s.name
   limit ${limit}`;

/** Subscribers by name without credentials, as a JSON array that the database renders: their filters may have many megabytes. */
export function exportSubscribers(db: Db, limit: number): Promise<{ count: number; json: string }> {
  return db.one(sql`
    select count(*)::integer as count,
           coalesce(json_agg(jsonb_set(to_jsonb(listed), '{sealed}', 'null') order by name), '[]')::text as json
      from (${exported(limit)}) as listed`);
}

export type SealableRow = {
  readonly name: string;
  /** The subscriber as a JSON object, without `sealed`. */
  readonly json: string;
  readonly credential: Buffer | null;
  readonly secrets: readonly Buffer[];
};

/** The same, one by one with its credentials as they are stored. */
export function exportSealable(db: Db, limit: number): Promise<SealableRow[]> {
  return db.rows<SealableRow>(sql`
    select listed.name, to_json(listed)::text as json, subscriber.credential, subscriber.secrets
      from (${exported(limit)}) as listed
      join subscriber on subscriber.name = listed.name
     order by listed.name`);
}
