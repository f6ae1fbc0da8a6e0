/** Statements that export topics and subscribers. */
import { type Db, sql } from '../../../kernel/sql.ts';

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

export type ExportedRow = {
  readonly name: string;
  readonly identity: string;
  readonly kind: 'http' | 'pull';
  readonly callback: string | null;
  readonly topics: string[];
  readonly timeout: number;
  readonly max: number;
  readonly filter: Record<string, unknown> | null;
  readonly max_bytes: number;
  readonly quiet: boolean;
  readonly ordering: 'subscriber' | 'key';
  readonly strands: number;
  readonly rate: number | null;
  readonly max_attempts: number | null;
  readonly max_age: number | null;
  readonly request_timeout: number | null;
  readonly credential: Buffer | null;
  readonly secrets: readonly Buffer[];
};

export function exportSubscribers(db: Db, limit: number): Promise<ExportedRow[]> {
  return db.rows<ExportedRow>(sql`
    select s.name, s.identity, s.kind, s.callback, topics.names as topics, t.window_ms as timeout, t.max_events as max, t.filter,
           t.max_bytes, t.quiet, t.ordering, t.strands, s.rate, s.max_attempts, s.max_age_ms as max_age,
           s.request_ms as request_timeout, s.credential, s.secrets
      from subscriber s
      join lateral (
        select * from subscription where subscriber_id = s.id order by from_seq desc limit 1) as t on true
      cross join lateral (
        select coalesce(array_agg(name order by name), '{}') as names
          from bus_topic
         where id = any (t.topics) and deleted_at is null) as topics
     order by s.name
     limit ${limit}`);
}
