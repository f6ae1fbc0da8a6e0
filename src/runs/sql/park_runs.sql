-- Parks the queued runs of paused tasks. A parked run gives its permits back, so that runs of other tasks can use them.
--
-- Locks: live with skip locked, then gates, then the event log.
create or replace function park_runs(p_tasks uuid[], p_at timestamptz) returns void language plpgsql as $$
declare
  v_left uuid[];
  v_gates record;
begin
  with theirs as (
    select v.id, v.permits
      from live v
     where v.task_id = any (p_tasks) and v.worker_id is null and (not v.parked or v.permits is not null)
       for update skip locked
  ),
  parked as (
    update live set parked = true, permits = null, gate = coalesce(live.gate, k.gates[1])
      from task k
     where k.id = live.task_id and live.id in (select id from theirs)
  )
  select array_agg(u.id) into v_left from theirs cross join unnest(theirs.permits) as u (id);
  select * into v_gates from work_gates(null, v_left, null, null, p_at);
  perform append_run_events(v_gates.ended, v_gates.bodies, null, null, null, 'scheduler', p_at);
end $$;
