/** Head rows of executions, as people see them. */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
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
