-- Fires instants of triggers: each once per cause (I1), in the same commit as the tokens that it counts up.
--
-- p_dues are the times at which the instants were due, one per trigger. It is null for missed instants, whose lateness is
-- meaningless. Returns the lanes in which runs became ready; null: any lane. A call without triggers plans what a firing needs.
--
-- Locks: firing by (trigger, instant), trigger by id, token by (task, instant), held, gate by id, the event log, the minute's
-- activity.
create or replace function fire_triggers(
  p_triggers uuid[], p_instants timestamptz[], p_cause text, p_priority priority, p_order text, p_at timestamptz,
  p_dues timestamptz[] default null,
  out fired integer, out created integer, out killed integer, out lanes text[]
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_tasks uuid[]; v_instants timestamptz[]; v_counts integer[]; v_priorities priority[]; v_causes uuid[];
  v_runs record; v_gates record; v_due record;
  v_first uuid[];
  v_activity activity;
begin
  -- old firings were deleted, so nothing below a trigger's low-water mark may fire by schedule again
  if p_cause = 'schedule' then
    select * into v_due from above_low_water(p_triggers, p_instants);
  else
    select p_triggers as triggers, p_instants as instants into v_due;
  end if;
  with first_time as (
    insert into firing (trigger_id, instant, cause)
    select d.trigger_id, d.instant, p_cause
      from unnest(v_due.triggers, v_due.instants) as d (trigger_id, instant)
     order by 1, 2
    on conflict do nothing
    returning trigger_id, instant
  ),
  arrived as (
    select e.task_id, f.instant + e.offset_ms * interval '1 millisecond' as instant,
           count(*)::integer as n, (array_agg(f.trigger_id))[1] as cause
      from first_time f
      join trigger_edge e using (trigger_id)
     where f.instant + e.offset_ms * interval '1 millisecond' < end_of_time()
     group by 1, 2
  )
  select (select array_agg(f.trigger_id) from first_time f), array_agg(a.task_id), array_agg(a.instant), array_agg(a.n),
         array_agg(p_priority), array_agg(a.cause)
    into v_first, v_tasks, v_instants, v_counts, v_priorities, v_causes
    from arrived a;
  fired := coalesce(cardinality(v_first), 0);
  if p_cause = 'schedule' then
    perform move_triggers(p_triggers, p_instants);
  end if;
  select * into v_runs from count_tokens(coalesce(v_tasks, '{}'), v_instants, v_counts, v_priorities, v_causes, p_order, p_at);
  created := coalesce(cardinality(v_runs.created), 0);
  select * into v_gates from work_gates(v_runs.gates, null, null, null, p_at);
  killed := v_gates.killed;
  lanes := case when v_gates.passed = 0 then v_runs.lanes end;
  if p_dues is not null and fired > 0 then
    -- usually all; some fired before if the answer to a former call was lost
    select p_at, count(*), sum(greatest(p_at - d.due, '0')), max(greatest(p_at - d.due, '0')),
           cardinality(v_gates.ended)
      into v_activity.at, v_activity.fired, v_activity.late, v_activity.worst_late, v_activity.cancelled
      from unnest(p_triggers, p_dues) as d (trigger_id, due)
     where fired = cardinality(p_triggers) or d.trigger_id = any (v_first);
  end if;
  perform append_run_events(
    v_gates.ended, v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'scheduler', p_at, v_activity);
end $$;
