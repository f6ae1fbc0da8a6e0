/**
 * What runs do now and did in the last hour, per task: a fragment over a CTE `tasks (id, …)`. Finished runs are found
 * by the BRIN index on their end, so the cost is that of the last hour: 30 ms for 36,000 of 5 million. Ranges that no
 * vacuum has summarised yet are read whole; a bulk load that left a third of them so made it 0.6 s.
 */
import { type Sql, sql } from '../kernel/sql.ts';

const hourMs = 3_600_000;

export const runCounts = (at: Date): Sql => sql`
      select live.task_id,
             count(*) filter (where live.worker_id is not null) as running,
             count(*) filter (where live.worker_id is null) as waiting,
             0 as success, 0 as failure, 0 as error
        from live
        join tasks on tasks.id = live.task_id
       group by live.task_id
      union all
      select run.task_id, 0, 0,
             count(*) filter (where run.state = 'success'),
             count(*) filter (where run.state in ('failure', 'timeout')),
             count(*) filter (where run.state = 'error')
        from run
        join tasks on tasks.id = run.task_id
       where run.finished_at > ${new Date(at.getTime() - hourMs)}
       group by run.task_id`;

/** The sums of those counts under the names of Waterwheel's totals. */
export const totals = sql`
         coalesce(sum(counts.waiting), 0)::integer as waiting_tasks,
         coalesce(sum(counts.success), 0)::integer as succeeded_tasks_last_hour,
         coalesce(sum(counts.failure), 0)::integer as failed_tasks_last_hour,
         coalesce(sum(counts.error), 0)::integer as error_tasks_last_hour`;
