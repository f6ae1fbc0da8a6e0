/**
 * Tasks whose newest finished run went wrong and that are not being tried again: a part of a statement, which walks along
 * the latest failures (run_failed) and stops at a bound.
 */
import { sql } from '../kernel/sql.ts';

/** Of the latest failures: one task that fails all the time may hide others, and is itself to be seen. */
const failuresSeen = 500;
const liveSeen = 100;

export const failingTasks = sql`
      select task.id as task_id, task.job_id, newest.id as run, newest.state, newest.instant, newest.reason,
             newest.finished_at
        from (
          select distinct failed.task_id
            from (
              select task_id
                from run
               where state in ('failure', 'timeout', 'error')
               order by finished_at desc
               limit ${failuresSeen}
            ) as failed
        ) as f
        join task on task.id = f.task_id and task.removed_at is null
       cross join lateral (
         select run.id, run.state, run.instant, run.reason, run.queued_at, run.finished_at
           from run
          where run.task_id = f.task_id
          order by run.finished_at desc, run.id desc
          limit 1
       ) as newest
       where newest.state in ('failure', 'timeout', 'error')
         and not exists (select 1 from retry where retry.task_id = f.task_id and retry.instant = newest.instant)
         and not exists (
           select 1
             from (
               select live.queued_at
                 from live
                where live.task_id = f.task_id
                order by live.instant desc
                limit ${liveSeen}
             ) as live
            where live.queued_at > newest.queued_at)`;
