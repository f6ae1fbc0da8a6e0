/** Statements that list and find definitions of flows. */
import { type Db, sql } from '../../kernel/sql.ts';

export type ListedFlow = {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly description: string | null;
  readonly project: string | null;
  readonly updated_at: Date;
  readonly updated_by: string;
};

/** By name. */
export function listFlows(
  db: Db,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<ListedFlow[]> {
  return db.rows<ListedFlow>(sql`
    select flow.id, flow.name, flow.version, flow.description, project.name as project, flow.updated_at,
           newest.actor as updated_by
      from flow
      join flow_version newest on newest.flow_id = flow.id and newest.version = flow.version
      left join project on project.id = flow.project_id
     where flow.deleted_at is null and flow.name > ${after ?? ''}
     order by flow.name
     limit ${limit}`);
}

export type CountRow = {
  readonly flow_id: string;
  readonly kind: 'running' | 'waiting' | 'paused' | 'incident';
  readonly n: number;
};

/** Executions that are counted for a list of flows: about 10 ms. */
const maxCounted = 10_000;

/** Executions that have not ended, by flow. The order makes the index of these the way to find them. */
export function countExecutions(db: Db): Promise<CountRow[]> {
  return db.rows<CountRow>(sql`
    select flow_id,
           case when status = 1 then 'paused'
                when status = 2 then 'incident'
                when calls + tasks > 0 or rev = 0 then 'running'
                else 'waiting' end as kind,
           count(*)::integer as n
      from (select flow_id, status, calls, tasks, rev
              from execution
             where status < 3
             order by owner
             limit ${maxCounted}) as counted
     group by 1, 2`);
}

export type FoundFlow = {
  readonly id: string;
  readonly version: number;
  readonly document: string;
};

/** `version`: undefined for the newest. */
export function findFlow(db: Db, name: string, version: number | undefined): Promise<FoundFlow | undefined> {
  return db.maybeOne<FoundFlow>(sql`
    select flow.id, shown.version, shown.document::text as document
      from flow
      join flow_version shown
        on shown.flow_id = flow.id and shown.version = coalesce(${version ?? null}::integer, flow.version)
     where flow.name = ${name} and flow.deleted_at is null`);
}

export type VersionRow = { readonly version: number; readonly at: Date; readonly actor: string };

/** Newest first. */
export function listVersions(db: Db, flowId: string, limit: number): Promise<VersionRow[]> {
  return db.rows<VersionRow>(sql`
    select version, at, actor from flow_version where flow_id = ${flowId} order by version desc limit ${limit}`);
}
