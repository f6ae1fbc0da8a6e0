/**
 * A job's latest instants, as parts of a statement that has named its tasks `tasks`: of each task a table is walked backwards
 * along (task_id, instant), so what is read is bounded by the page.
 */
import { type Sql, sql } from '../../kernel/sql.ts';

/** The latest instants before one. */
export interface InstantPage {
  readonly before?: Date | undefined;
  readonly limit: number;
}

/** Of each task the latest instants in a table that is indexed by (task_id, instant). */
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
