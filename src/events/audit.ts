/**
 * The event log as an audit: who did what, newest first.
 *
 * Events of people are rare among those of schedulers and workers, so they have their own index (event_people). A page for
 * one actor or topic scans a bounded number of events. It may therefore be short or empty, and still have a `next`.
 */
import { allOf, type Db, type Sql, sql } from '../kernel/sql.ts';
import { topics } from './append.ts';
import type { LoggedEvent } from './queries.ts';

export interface AuditFilter {
  /** Numbers below this, exclusive. */
  readonly before: number | undefined;
  readonly actor: string | undefined;
  readonly topicId: number | undefined;
  /** Whether to include events of schedulers, workers and tasks. Ignored if `actor` is given. */
  readonly machines: boolean;
  readonly limit: number;
}

export interface AuditPage {
  readonly events: readonly LoggedEvent[];
  /** The `before` of the next page. */
  readonly next: number | null;
}

/** Maximum events that one page scans for an actor or topic. */
const maxScannedEvents = 10_000;

/** Must equal the predicate of the index event_people. */
const byPeople = sql`
             event.actor not in ('scheduler', 'worker', 'installation') and event.actor not like 'run:%'`;

const machineNames = new Set(['scheduler', 'worker', 'installation']);
/** Schedulers, workers, the installation itself, and tasks that call the API. */
export const isMachine = (actor: string): boolean => machineNames.has(actor) || actor.startsWith('run:');

/** The conditions that an index serves. Nearly all events concern runs, so the index of topics leaves out that topic. */
function indexedConditions({ before, actor, topicId, ...filter }: AuditFilter): Sql {
  const machines = actor === undefined ? filter.machines : isMachine(actor);
  const hasIndex = machines && topicId !== undefined && topicId !== topics.millrace_runs;
  return allOf([
    before === undefined ? sql`true` : sql`event.seq < ${before}`,
    machines ? sql`true` : byPeople,
    hasIndex ? sql`event.topic_id = ${topicId} and event.topic_id <> 3` : sql`true`,
  ]);
}

type Row = { walked: number; floor: number | null } & { [K in keyof LoggedEvent]: LoggedEvent[K] | null };

export async function readAudit(db: Db, filter: AuditFilter): Promise<AuditPage> {
  const { actor, topicId, limit } = filter;
  const most = actor === undefined && topicId === undefined ? limit + 1 : maxScannedEvents;
  const wanted = allOf([
    actor === undefined ? sql`true` : sql`w.actor = ${actor}`,
    topicId === undefined ? sql`true` : sql`w.topic_id = ${topicId}`,
  ]);
  const rows = await db.rows<Row>(sql`
    with walked as materialized (
      select event.seq, event.topic_id, event.type, event.subject, event.actor, event.cause, event.at, event.body
        from event
       where ${indexedConditions(filter)}
       order by event.seq desc
       limit ${most}
    )
    select extent.walked, extent.floor, found.*
      from (select count(*)::integer as walked, min(seq) as floor from walked) as extent
      left join lateral (
        select w.seq, topic.name as topic, w.type, w.subject, w.actor, w.cause, w.at, w.body
          from walked w
          join topic on topic.id = w.topic_id
         where ${wanted}
         order by w.seq desc
         limit ${limit + 1}
      ) as found on true`);
  const found = rows.filter((row): row is Row & LoggedEvent => row.seq !== null);
  const events = found.slice(0, limit);
  if (found.length > limit) return { events, next: events.at(-1)?.seq ?? null };
  const [extent] = rows;
  const isCut = extent !== undefined && extent.walked === most;
  return { events, next: isCut ? extent.floor : null };
}

/** Parses the body of an event. A body that is not JSON stays text. */
export function bodyOf({ body }: Pick<LoggedEvent, 'body'>): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return body;
  }
}

/** The name of the subject, or the key that was changed, according to the body of an event. */
export function nameIn(body: unknown, field: 'name' | 'key' = 'name'): string | null {
  const name: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, field) : undefined;
  return typeof name === 'string' ? name : null;
}
