/**
 * Counts of unfinished runs and of runs that ended in the last hour, per task: a fragment for a CTE `tasks (id, …)`. It walks
 * the latest runs of each task (run_ended), so its cost depends on the last hour. At most about 100,000 runs are counted in
 * total, but at least 1,000 of each task.
 */
import { type Sql, sql } from '../../kernel/sql.ts';

const hourMs = 3_600_000;
const maxRunsInTotal = 100_000;
const minRunsPerTask = 1_000;

export const runCounts = (at: Date): Sql => sql`
      select live.task_id,
             count(*) filter (where live.worker_id is not null) as running,
             count(*) filter (where live.worker_id is null) as waiting,
             0 as success, 0 as failure, 0 as error
        from live
        join tasks on tasks.id = live.task_id
       group by live.task_id
      union all
      select tasks.id, 0, 0,
             count(*) filter (where latest.state = 'success'),
             count(*) filter (where latest.state in ('failure', 'timeout')),
             count(*) filter (where latest.state = 'error')
        from tasks
       cross join lateral (
         select run.state
           from run
          where run.task_id = tasks.id and run.finished_at > ${new Date(at.getTime() - hourMs)}
          order by run.finished_at desc
          limit (select greatest(${minRunsPerTask}, ${maxRunsInTotal} / greatest(count(*), 1)) from tasks)
       ) as latest
       group by tasks.id`;

/** The sums of these counts, with Waterwheel's names. */
export const totals = sql`
         coalesce(sum(counts.waiting), 0)::integer as waiting_tasks,
         coalesce(sum(counts.success), 0)::integer as succeeded_tasks_last_hour,
         coalesce(sum(counts.failure), 0)::integer as failed_tasks_last_hour,
         coalesce(sum(counts.error), 0)::integer as error_tasks_last_hour`;
