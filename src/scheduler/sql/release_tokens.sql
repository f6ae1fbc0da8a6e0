-- Releases held tokens of tasks that may run again: each multiple of the threshold becomes a run of the priority that the
-- token has. Also unparks runs that were queued when their job was paused. Returns the number of runs.
--
-- Locks: live by id, token by (task, instant), held, gate by id, the event log.
create or replace function release_tokens(p_limit integer, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_runs record; v_gates record;
  v_unparked integer; v_freed uuid[];
begin
  with free as (
    select live.id from live join task k on k.id = live.task_id
     where live.parked and not k.paused
     order by live.id limit p_limit for update of live
  ),
  unparked as (
    update live set parked = false where id = any (array(select id from free)) returning gate
  )
  select count(*), array_agg(distinct gate) filter (where gate is not null) into v_unparked, v_freed from unparked;
  -- lock order: token before held
  with wanted as (
    select t.task_id, t.instant
      from token t
     where (t.task_id, t.instant) in (
       select h.task_id, h.instant from held h join task k on k.id = h.task_id
        where not k.paused order by 1, 2 limit p_limit)
     order by 1, 2
       for update of t
  ),
  free as (
    delete from held h
     where (h.task_id, h.instant) in (select w.task_id, w.instant from wanted w)
    returning h.task_id, h.instant
  )
  -- adding zero to a token makes count_tokens compare it with its threshold again
  select c.* into v_runs
    from (
      select array_agg(f.task_id order by f.task_id, f.instant) as tasks,
             array_agg(f.instant order by f.task_id, f.instant) as instants,
             array_agg(t.priority order by f.task_id, f.instant) as priorities,
             array_agg(t.cause order by f.task_id, f.instant) as causes
        from free f join token t using (task_id, instant)
    ) as a,
    lateral count_tokens(a.tasks, a.instants, array_fill(0, array[coalesce(cardinality(a.tasks), 0)]),
                         a.priorities, a.causes, 'earliest', p_at) as c;
  select * into v_gates from work_gates(v_freed || v_runs.gates, null, null, null, p_at);
  perform append_run_events(
    v_gates.ended, v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'scheduler', p_at);
  return coalesce(cardinality(v_runs.created), 0) + v_unparked;
end $$;
