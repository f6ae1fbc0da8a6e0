/**
 * The latest instants of a job, as fragments of a statement with a CTE `tasks`. For each task, an index on (task_id, instant)
 * is walked backwards, so the page bounds the number of rows read.
 */
import { type Sql, sql } from '../../kernel/sql.ts';

/** The latest instants, before a given one. */
export interface InstantPage {
  readonly before?: Date | undefined;
  readonly limit: number;
}

/** For each task, the latest instants in a table with an index on (task_id, instant). */
export const latestIn = (table: Sql, page: InstantPage): Sql => sql`
      select distinct latest.instant
        from tasks
       cross join lateral (
         select x.instant
           from ${table} x
          where x.task_id = tasks.id and x.instant < coalesce(${page.before}::timestamptz, 'infinity')
          order by x.instant desc
          limit ${page.limit}
       ) as latest`;

/** The latest instants of all tasks that have tokens. */
export const latestInstants = (page: InstantPage): Sql => sql`
      ${latestIn(sql`token`, page)}
       order by latest.instant desc
       limit ${page.limit}`;
