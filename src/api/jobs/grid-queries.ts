/**
 * Statements for the grid of a job. A page is found by walking the primary key of tokens for each task, towards older or newer
 * instants. The state of each cell is computed separately, so the page bounds the number of rows read.
 */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import type { NamedTask, OrderingEdge } from './task-order.ts';
import { tokenState } from '../instants/token-state.ts';

export function listGridTasks(db: Db, job: string): Promise<NamedTask[]> {
  return db.rows<NamedTask>(sql`
    select id, name
      from task
     where job_id = ${job} and removed_at is null`);
}

/**
 * Edges from these tasks, also to tasks of other jobs. `offset 0` makes the planner probe the primary key for each task. With a
 * join, before the tables were analyzed, it paired all 2,000 tasks of a new job with each other, which took 14 s.
 */
export function listEdgesFrom(db: Db, tasks: readonly string[]): Promise<OrderingEdge[]> {
  return db.rows<OrderingEdge>(sql`
    select edge.parent_id, edge.child_id, edge.offset_ms
      from unnest(${tasks}::uuid[]) as k (id)
     cross join lateral (
       select parent_id, child_id, offset_ms
         from task_edge
        where task_edge.parent_id = k.id
       offset 0
     ) as edge`);
}

/** The instants before or after a given one, nearest first; with neither, the latest. */
export interface GridPage {
  readonly before: Date | undefined;
  readonly after: Date | undefined;
  readonly limit: number;
}

const walk = (page: GridPage): Sql =>
  page.after === undefined
    ? sql`t.instant < coalesce(${page.before}::timestamptz, 'infinity') order by t.instant desc`
    : sql`t.instant > ${page.after} order by t.instant`;

export async function listGridInstants(db: Db, tasks: readonly string[], page: GridPage): Promise<Date[]> {
  const rows = await db.rows<{ instant: Date }>(sql`
    select distinct near.instant
      from unnest(${tasks}::uuid[]) as k (id)
     cross join lateral (
       select t.instant
         from token t
        where t.task_id = k.id and ${walk(page)}
        limit ${page.limit}
     ) as near
     order by near.instant ${page.after === undefined ? sql`desc` : sql``}
     limit ${page.limit}`);
  return rows.map((row) => row.instant);
}

/**
 * Whether older or newer instants exist. A null time finds nothing. The `order by` makes the planner use the index; else it
 * might scan the table for any row.
 */
export function findNeighbours(
  db: Db,
  tasks: readonly string[],
  { before, after }: { before: Date | null; after: Date | null },
): Promise<{ older: boolean; newer: boolean }> {
  const some = (nearest: Sql): Sql => sql`
    exists (
      select 1
        from unnest(${tasks}::uuid[]) as k (id)
       cross join lateral (select 1 from token t where t.task_id = k.id and ${nearest} limit 1) as near)`;
  return db.one(sql`
    select ${some(sql`t.instant < ${before}::timestamptz order by t.instant desc`)} as older,
           ${some(sql`t.instant > ${after}::timestamptz order by t.instant`)} as newer`);
}

export type GridRow = {
  readonly instant: Date;
  /** Waterwheel's states, in the order of the given tasks; null if a task has no token. */
  readonly states: readonly (State | null)[];
};

/** The `limit` makes the planner probe the index for each cell; with a join, a large page would read the whole table. */
export function listGridRows(db: Db, tasks: readonly string[], instants: readonly Date[]): Promise<GridRow[]> {
  return db.rows<GridRow>(sql`
    select i.instant, array_agg(cell.state order by k.place) as states
      from unnest(${instants}::timestamptz[]) as i (instant)
     cross join unnest(${tasks}::uuid[]) with ordinality as k (id, place)
      left join lateral (
        select ${tokenState} as state
          from token t
         where t.task_id = k.id and t.instant = i.instant
         limit 1
      ) as cell on true
     group by i.instant
     order by i.instant desc`);
}
