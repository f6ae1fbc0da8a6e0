/**
 * Tasks whose newest finished run failed and that are not being retried, as a fragment of a statement. It walks the index
 * run_failed back by hour, and within an hour from task to task, up to a bound. So a task that fails every few seconds costs
 * one step per hour, and does not hide a task that failed once last night.
 */
import { sql } from '../../kernel/sql.ts';

/** Maximum steps, each for one hour and one task that failed in it. */
const maxSteps = 1_000;
const maxLiveRuns = 100;

/** Both must equal the expressions of the index. */
const hour = sql`date_bin('1 hour', run.finished_at, '2000-01-01 00:00:00+00')`;
const failed = sql`run.state in ('failure', 'timeout', 'error') and run.task_id is not null`;

export const failingTasks = sql`
      with recursive step as (
        (select ${hour} as hour, run.task_id, 1 as n
           from run
          where ${failed}
          order by ${hour} desc, run.task_id desc
          limit 1)
        union all
        select next.hour, next.task_id, step.n + 1
          from step
         cross join lateral (
           select ${hour} as hour, run.task_id
             from run
            where ${failed} and (${hour}, run.task_id) < (step.hour, step.task_id)
            order by ${hour} desc, run.task_id desc
            limit 1
         ) as next
         where step.n < ${maxSteps}
      )
      select task.id as task_id, task.job_id, newest.id as run, newest.state, newest.instant, newest.reason,
             newest.finished_at
        from (select distinct step.task_id from step) as f
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
                limit ${maxLiveRuns}
             ) as live
            where live.queued_at > newest.queued_at)`;
