-- Ends those of the given runs that no worker has claimed, as cancelled. Runs that another transaction has locked are
-- skipped.
--
-- Returns the events to append and the permits to give back. The caller does both. Executions of runs of nodes are told (tell_nodes);
-- `owners` are theirs.
--
-- Locks: live by id with skip locked, inbox.
create or replace function cancel_queued(
  p_runs uuid[], p_reason text, p_at timestamptz,
  out cancelled uuid[], out bodies text[], out permits uuid[], out jobs uuid[], out instants timestamptz[],
  out owners uuid[]
) language plpgsql as $$
declare
  v_nodes uuid[];
begin
  with free as (
    select v.id from live v where v.id = any (p_runs) and v.worker_id is null order by v.id for update skip locked
  ),
  gone as (
    delete from live where live.id = any (array(select id from free)) returning live.*
  ),
  recorded as (
    insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason, cause,
                     queued_at, finished_at)
    select g.id, g.task_id, g.instant, g.origin, g.version, g.attempt, g.priority, g.lease, null, 'cancelled', p_reason,
           g.cause, g.queued_at, p_at
      from gone g
  )
  select array_agg(g.id),
         array_agg(end_body(k.job_id, g.task_id, g.instant, g.attempt, g.priority, 'cancelled', p_reason, false,
                            n.execution_id, n.nid)),
         (select array_agg(u.id) from gone cross join unnest(gone.permits) as u (id)),
         array_agg(k.job_id) filter (where k.gates[1] = k.job_id),
         array_agg(g.instant) filter (where k.gates[1] = k.job_id),
         array_agg(g.id) filter (where g.task_id is null)
    into cancelled, bodies, permits, jobs, instants, v_nodes
    from gone g
    left join task k on k.id = g.task_id
    left join node_run n on g.task_id is null and n.run_id = g.id;
  if v_nodes is not null then
    owners := tell_nodes(
      v_nodes, array_fill('cancelled'::run_state, array[cardinality(v_nodes)]), null, null, null, p_at);
  end if;
end $$;
