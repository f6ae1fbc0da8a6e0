/**
 * Statements about the instants of a job. A page is found by walking the primary key of tokens backwards for each task. The
 * number of rows read depends on the instants of the page, not on the number of old runs.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { latestInstants } from './latest-instants.ts';
import { tokenState } from './token-state.ts';

export type InstantRow = {
  readonly instant: Date;
  /** The number of tokens by Waterwheel's state. */
  readonly states: Readonly<Record<string, number>>;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly active: boolean | null;
};

/** For a row `t` of `token`: the start of its first run since the last clear, and the end of its last run. */
export const tokenTimes = sql`
         select min(x.started_at) as started_at, max(x.finished_at) as finished_at
           from (
             select live.claimed_at as started_at, null::timestamptz as finished_at
               from live
              where live.task_id = t.task_id and live.instant = t.instant
             union all
             select run.started_at, run.finished_at
               from run
              where run.task_id = t.task_id and run.instant = t.instant
                and (t.cleared_at is null or run.finished_at > t.cleared_at)
           ) as x`;

export function listInstants(
  db: Db,
  job: string,
  page: { before: Date | undefined; limit: number },
): Promise<InstantRow[]> {
  return db.rows<InstantRow>(sql`
    with tasks as (
      select id
        from task
       where job_id = ${job} and removed_at is null
    ),
    instants as (
      ${latestInstants(page)}
    ),
    judged as (
      select t.instant, ${tokenState} as state, r.started_at, r.finished_at
        from tasks
       cross join instants
        join token t on t.task_id = tasks.id and t.instant = instants.instant
       cross join lateral (${tokenTimes}) as r
    ),
    counted as (
      select judged.instant, judged.state, count(*) as n, min(judged.started_at) as started_at,
             max(judged.finished_at) as finished_at
        from judged
       group by 1, 2
    )
    select c.instant, jsonb_object_agg(c.state, c.n) as states, min(c.started_at) as started_at,
           max(c.finished_at) as finished_at,
           (select exists (select 1 from active_instant a where a.job_id = ${job} and a.instant = c.instant)
              from gate
             where gate.id = ${job} and gate.capacity is not null) as active
      from counted c
     group by c.instant
     order by c.instant desc`);
}
