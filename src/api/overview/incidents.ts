/** Executions of flows that wait for a repair, for the start page. */
import type { CallAnswer } from '../../http/client.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { overviewEndpoints } from './endpoints.ts';
import { maxShown } from './queries.ts';

type Incidents = CallAnswer<(typeof overviewEndpoints)['GET /api/overview']>['incidents'];

const maxCounted = 100;

type IncidentRow = {
  readonly execution: string;
  readonly flow: string;
  readonly key: string | null;
  readonly body: string | null;
  readonly since: Date;
  readonly total: number;
};

export async function listIncidents(db: Db): Promise<Incidents> {
  const rows = await db.rows<IncidentRow>(sql`
    with found as materialized (
      select id from execution where status = 2 order by id desc limit ${maxCounted}
    ),
    shown as (
      select id from found order by id desc limit ${maxShown}
    )
    select e.id as execution, flow.name as flow, e.key, last.body, coalesce(last.at, e.updated_at) as since,
           (select count(*)::integer from found) as total
      from shown
      join execution e on e.id = shown.id
      join flow on flow.id = e.flow_id
      left join lateral (
        select event.at, event.body
          from event
         where event.subject = e.id and event.type = 'execution.incident'
         order by event.seq desc
         limit 1
      ) as last on true
     order by e.id desc`);
  return { total: rows[0]?.total ?? 0, items: rows.map(viewIncident) };
}

function viewIncident({ execution, flow, key, body, since }: IncidentRow): Incidents['items'][number] {
  const { node = null, code = null } = (body === null ? {} : JSON.parse(body)) as { node?: string; code?: string };
  return { execution, flow, key, node, code, since: since.toISOString() };
}
