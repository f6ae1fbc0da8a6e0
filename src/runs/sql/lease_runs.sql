-- Gives locked runs to workers: the n-th run to the n-th worker. Each hand-out increments the lease of the run (I4), and
-- forgets a result that the task of an earlier hand-out has sent.
--
-- Runs of paused jobs are not handed out. The caller parks them.
--
-- Locked rows are found again by ctid, which cannot change while the row is locked. A join by id would scan the table
-- whenever the planner believes that it is empty. What a node run is about is looked up for node runs only.
--
-- Locks: lease by worker. The caller has locked the runs.
create or replace function lease_runs(
  p_spots tid[], p_tasks uuid[], p_workers uuid[], p_incarnations bigint[], p_until timestamptz, p_at timestamptz
) returns table (
  id uuid, task_id uuid, instant timestamptz, version integer, attempt integer, priority priority,
  lease integer, worker_id uuid, params json, node json, rank timestamptz
) language plpgsql as $$
#variable_conflict use_column
begin
  if p_until is not null then
    insert into lease as w (worker_id, incarnation, until)
    select p.worker, max(p.incarnation), p_until
      from unnest(p_workers[:cardinality(p_spots)], p_incarnations[:cardinality(p_spots)]) as p (worker, incarnation)
     group by 1
     order by 1
    on conflict (worker_id) do update set
      until = greatest(w.until, excluded.until),
      incarnation = greatest(w.incarnation, excluded.incarnation);
  end if;
  return query
  with claimed as (
    update live
       set worker_id = p_workers[h.n], incarnation = p_incarnations[h.n], lease = live.lease + 1, claimed_at = p_at,
           result = null
      from unnest(p_spots, p_tasks) with ordinality as h (spot, task_id, n)
      -- a node's run has no task, and nothing that pauses it here
      left join task k on k.id = h.task_id
     where live.ctid = h.spot and not coalesce(k.paused, false)
    returning live.id, live.task_id, live.instant, live.version, live.attempt, live.priority, live.lease,
              live.worker_id, live.rank, k.job_id
  )
  select c.id, c.task_id, c.instant, c.version, c.attempt, c.priority, c.lease, c.worker_id,
         (select i.params from instant_params i where i.job_id = c.job_id and i.instant = c.instant),
         case when c.task_id is null then (
           select json_build_object(
                    'execution', n.execution_id, 'id', n.nid, 'work', n.work,
                    'project', (select json_build_object('id', p.id, 'name', p.name) from project p where p.id = n.project_id))
             from node_run n
            where n.run_id = c.id
         ) end,
         c.rank
    from claimed c
   order by c.rank, c.id;
end $$;
