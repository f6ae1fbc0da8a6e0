/** The audit: who did what in this tenant, with the names of the subjects. */
import { bodyOf, nameIn, readAudit } from '../../events/audit.ts';
import { findTopic, type LoggedEvent } from '../../events/queries.ts';
import type { Input } from '../../http/endpoint.ts';
import type { Db } from '../../kernel/sql.ts';
import {
  nameBackfills,
  nameExecutions,
  nameFlows,
  nameJobs,
  type NamedRow,
  nameProjects,
  nameRuns,
  nameSubscribers,
} from './queries.ts';
import { type ApiContext, badRequest } from '../context.ts';
import type { auditEndpoints } from './endpoints.ts';

type Kind = 'project' | 'job' | 'backfill' | 'run' | 'subscriber' | 'flow' | 'execution';

const namings: Readonly<Record<Kind, (db: Db, ids: readonly string[]) => Promise<NamedRow[]>>> = {
  project: nameProjects,
  job: nameJobs,
  backfill: nameBackfills,
  run: nameRuns,
  subscriber: nameSubscribers,
  flow: nameFlows,
  execution: nameExecutions,
};

/** By the first word of an event's type. A pool has no page. The stash of a project is on the project's page. */
const kinds: Readonly<Record<string, Kind>> = {
  project: 'project',
  stash: 'project',
  job: 'job',
  tokens: 'job',
  backfill: 'backfill',
  run: 'run',
  retry: 'run',
  subscriber: 'subscriber',
  bus: 'subscriber',
  replay: 'subscriber',
  dead_letter: 'subscriber',
  dead_letters: 'subscriber',
  flow: 'flow',
  execution: 'execution',
  workitem: 'execution',
};

const kindOf = ({ type }: LoggedEvent): Kind | undefined => kinds[type.split('.', 1)[0] ?? ''];

export async function auditOf({ query }: Input<(typeof auditEndpoints)['GET /api/audit']>, ctx: ApiContext) {
  const topicId = query.topic === undefined ? undefined : await findTopic(ctx.db, query.topic);
  if (query.topic !== undefined && topicId === undefined) throw badRequest('query.topic', 'is not a topic');
  const { before, actor, machines, limit } = query;
  const { events, next } = await readAudit(ctx.db, { before, actor, topicId, machines, limit });
  const names = await namesOf(ctx.db, events);
  return { items: events.map((event) => renderEvent(event, names)), next };
}

/** Reads the names of all subjects, by kind and id, with one statement per kind. */
async function namesOf(db: Db, events: readonly LoggedEvent[]): Promise<Map<string, NamedRow>> {
  const found = await Promise.all(
    Object.entries(namings).map(async ([kind, name]) => {
      const ids = events.flatMap((event) => (kindOf(event) === kind && event.subject !== null ? [event.subject] : []));
      const rows = ids.length === 0 ? [] : await name(db, [...new Set(ids)]);
      return rows.map((row) => [`${kind} ${row.id}`, row] as const);
    }),
  );
  return new Map(found.flat());
}

function renderEvent(event: LoggedEvent, names: ReadonlyMap<string, NamedRow>) {
  const { seq, at, actor, topic, type, subject } = event;
  const kind = kindOf(event);
  const known = kind === undefined ? undefined : names.get(`${kind} ${subject}`);
  const body = bodyOf(event);
  return {
    seq,
    at: at.toISOString(),
    actor,
    topic,
    type,
    subject,
    name: nameOf(event, known, body),
    page: kind === undefined || known === undefined || known.gone ? null : { kind, id: known.id },
    body,
  };
}

/** If the subject is no longer on record, or has no page, the name comes from the event itself. */
function nameOf({ type, subject }: LoggedEvent, known: NamedRow | undefined, body: unknown): string | null {
  const own = known?.name ?? nameIn(body);
  const key = type.startsWith('stash.') ? nameIn(body, 'key') : null;
  if (key === null) return own;
  return subject === null ? `stash/${key}` : `${own ?? subject}/stash/${key}`;
}
