-- Stops runs whose nodes do not want an answer any more. A queued run ends at once, and its node is told (tell_nodes). A running one is
-- marked, and its worker kills it.
--
-- Returns the workers, runs and leases to kill, the events to append, the permits to give back, and the executions that were told. The
-- caller passes the permits to work_gates.
--
-- Locks: live by id, inbox (rows that are inserted).
create or replace function stop_node_runs(
  p_executions uuid[], p_nids text[], p_attempts integer[], p_at timestamptz,
  out workers uuid[], out runs uuid[], out leases integer[],
  out cancelled uuid[], out bodies text[], out permits uuid[], out answered uuid[]
) language plpgsql as $$
declare
  v_runs uuid[];
  v_done record;
begin
  v_runs := array(
    select n.run_id
      from unnest(p_executions, p_nids, p_attempts) as u (execution_id, nid, attempt)
      join node_run n on n.execution_id = u.execution_id and n.nid = u.nid and n.attempt = u.attempt
     order by n.run_id);
  -- a claim that is under way decides first whether they run
  perform 1 from unnest(v_runs) as r (id) cross join lateral (select from live where live.id = r.id for update) as v;
  with marked as (
    update live set cancel = true, cancel_reason = 'cancelled by its execution'
     where id = any (v_runs) and worker_id is not null and not cancel
    returning worker_id, id, lease
  )
  select array_agg(worker_id), array_agg(id), array_agg(lease) into workers, runs, leases from marked;
  v_done := cancel_queued(v_runs, 'cancelled by its execution', p_at);
  cancelled := v_done.cancelled;
  bodies := v_done.bodies;
  permits := v_done.permits;
  answered := array(select n.execution_id from node_run n where n.run_id = any (v_done.cancelled));
end $$;
