/** Head rows of executions, as people see them: by id, and by what they search for. */
import { allOf, type Db, type Sql, sql } from '../../kernel/sql.ts';
import { labelText } from './labels.ts';
import { statusNumbers } from './memory.ts';

export const statuses = ['running', 'waiting', 'paused', 'incident', 'done', 'failed', 'cancelled'] as const;
export type Status = (typeof statuses)[number];

export interface Head {
  readonly id: string;
  readonly rev: number;
  readonly status: Status;
  /** The name of the flow. */
  readonly flow: string;
  readonly flowId: string;
  readonly version: number;
  readonly key: string | null;
  readonly owner: string | null;
  readonly parent: { readonly execution: string; readonly nid: string } | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly endedAt: Date | null;
}

export type HeadRow = {
  readonly id: string;
  readonly rev: number;
  readonly status: number;
  readonly calls: number;
  readonly tasks: number;
  readonly flow: string;
  readonly flow_id: string;
  readonly version: number;
  readonly key: string | null;
  readonly owner: string | null;
  readonly parent: string | null;
  readonly parent_nid: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly ended_at: Date | null;
};

export const headColumns: Sql = sql`
  e.id, e.rev, e.status, e.calls, e.tasks, f.name as flow, e.flow_id, e.version, e.key, e.owner, e.parent, e.parent_nid,
  (select json_object_agg(l.name, l.value) from label l where l.execution_id = e.id) as labels,
  e.created_at, e.updated_at, e.ended_at`;

export function toHead(row: HeadRow): Head {
  const { id, rev, flow, version, key, owner, parent, parent_nid: nid } = row;
  return {
    id,
    rev,
    flow,
    version,
    key,
    owner,
    status: statusOf(row),
    flowId: row.flow_id,
    parent: parent === null || nid === null ? null : { execution: parent, nid },
    labels: row.labels ?? {},
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    endedAt: row.ended_at,
  };
}

/** A live execution is running if something is at work for it, or if its launch has not been interpreted yet. */
function statusOf({ status, rev, calls, tasks }: HeadRow): Status {
  if (status === statusNumbers.live) return rev === 0 || calls + tasks > 0 ? 'running' : 'waiting';
  return statuses[status + 1] ?? 'running';
}

/** Those that exist, in no order. */
export async function readHeads(db: Db, ids: readonly string[]): Promise<Head[]> {
  const rows = await db.rows<HeadRow>(sql`
    select ${headColumns}
      from execution e join flow f on f.id = e.flow_id
     where e.id = any (${ids}::uuid[])`);
  return rows.map(toHead);
}

export interface HeadFilter {
  /** The name of a flow. Executions of deleted flows of this name are found, too. */
  readonly flow?: string | undefined;
  readonly version?: number | undefined;
  readonly status?: readonly Status[] | undefined;
  /** All of them. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly key?: string | undefined;
  readonly parent?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
  readonly endedAfter?: Date | undefined;
  /** The id of the last execution of the page before. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function searchHeads(db: Db, filter: HeadFilter): Promise<Head[]> {
  const rows = await db.rows<HeadRow>(sql`
    select ${headColumns}
      from execution e join flow f on f.id = e.flow_id
     where ${allOf(conditionsOf(filter))}
     order by e.id desc
     limit ${filter.limit}`);
  return rows.map(toHead);
}

function conditionsOf(filter: HeadFilter): Sql[] {
  const { flow, version, status, key, parent, createdAfter, createdBefore, endedAfter, cursor } = filter;
  const conditions: Sql[] = Object.entries(filter.labels ?? {}).map(
    ([name, value]) =>
      sql`e.id in (select l.execution_id from label l where l.name = ${name} and l.value = ${labelText(value)})`,
  );
  if (flow !== undefined) conditions.push(sql`e.flow_id in (select id from flow where name = ${flow})`);
  if (version !== undefined) conditions.push(sql`e.version = ${version}`);
  if (status !== undefined) conditions.push(hasStatus(status));
  if (key !== undefined) conditions.push(sql`e.key = ${key}`);
  if (parent !== undefined) conditions.push(sql`e.parent = ${parent}::uuid`);
  if (createdAfter !== undefined) conditions.push(sql`e.created_at >= ${createdAfter}::timestamptz`);
  if (createdBefore !== undefined) conditions.push(sql`e.created_at < ${createdBefore}::timestamptz`);
  if (endedAfter !== undefined) conditions.push(sql`e.ended_at >= ${endedAfter}::timestamptz`);
  if (cursor !== undefined) conditions.push(sql`e.id < ${cursor}::uuid`);
  return conditions;
}

function hasStatus(wanted: readonly Status[]): Sql {
  const others = wanted.filter((status) => status !== 'running' && status !== 'waiting');
  const numbers = others.map((status) => statuses.indexOf(status) - 1);
  const isBusy = sql`(e.rev = 0 or e.calls + e.tasks > 0)`;
  const [running, waiting] = [wanted.includes('running'), wanted.includes('waiting')];
  if (!running && !waiting) return sql`e.status = any (${numbers}::smallint[])`;
  if (running && waiting) return sql`(e.status = 0 or e.status = any (${numbers}::smallint[]))`;
  const live = running ? isBusy : sql`not ${isBusy}`;
  return sql`(e.status = 0 and ${live} or e.status = any (${numbers}::smallint[]))`;
}
