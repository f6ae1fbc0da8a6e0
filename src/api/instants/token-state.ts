/**
 * The derived state of a token (design §6): the state of its live run, else `retry` if one is scheduled, else the state of its
 * newest run if that ended after the last clear, else `waiting`. A ready run has the state `active`, as in Waterwheel.
 *
 * This is a fragment for a row `t` of `token`. It makes three index probes (live_task, retry_task, run_task), so its cost does
 * not depend on the number of old runs.
 */
import { sql } from '../../kernel/sql.ts';

export const tokenState = sql`coalesce(
        (select case when live.worker_id is null then 'active' else 'running' end
           from live
          where live.task_id = t.task_id and live.instant = t.instant
          order by live.worker_id is null
          limit 1),
        (select 'retry'
           from retry
          where retry.task_id = t.task_id and retry.instant = t.instant
          limit 1),
        (select run.state::text
           from run
          where run.task_id = t.task_id and run.instant = t.instant
            and (t.cleared_at is null or run.finished_at > t.cleared_at)
          order by run.finished_at desc, run.id desc
          limit 1),
        'waiting')`;
