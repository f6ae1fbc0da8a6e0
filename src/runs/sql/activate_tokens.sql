-- Activates tokens by hand. Each token gets one run at once, even if it is named twice, and its count restarts from zero, as
-- if the threshold had been reached.
--
-- Locks: token by (task, instant), held, gate by id, the event log.
create or replace function activate_tokens(p_tasks uuid[], p_instants timestamptz[], p_priority priority, p_actor text, p_at timestamptz)
returns uuid[] language plpgsql as $$
declare
  v_tasks uuid[]; v_instants timestamptz[];
  v_runs record; v_gates record;
begin
  select coalesce(array_agg(a.task_id), '{}'), coalesce(array_agg(a.instant), '{}') into v_tasks, v_instants
    from (select distinct d.task_id, d.instant from unnest(p_tasks, p_instants) as d (task_id, instant)) as a;
  insert into token as t (task_id, instant, count, fire, reach, priority)
  select a.task_id, a.instant, 0, 1, k.threshold, p_priority
    from unnest(v_tasks, v_instants) as a (task_id, instant)
    join task k on k.id = a.task_id
   order by 1, 2
  on conflict (task_id, instant) do update set count = 0, fire = 1, priority = excluded.priority, cause = null;
  delete from held h using unnest(v_tasks, v_instants) as a (task_id, instant)
   where h.task_id = a.task_id and h.instant = a.instant;
  select * into v_runs
    from queue_runs(v_tasks, v_instants, array_fill(1, array[cardinality(v_tasks)]),
                    array_fill(p_priority, array[cardinality(v_tasks)]),
                    array_fill(null::uuid, array[cardinality(v_tasks)]), p_at);
  select * into v_gates from work_gates(v_runs.gates, null, null, null, p_at);
  perform append_run_events(v_gates.ended, v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, p_actor, p_at);
  return coalesce(v_runs.created, '{}');
end $$;
