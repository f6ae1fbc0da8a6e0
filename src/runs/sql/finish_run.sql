-- Applies the result of one run that succeeded, in a few short statements. finish_runs does the same for any results, with plans
-- so large that preparing their execution takes longer than the work if there is only one result.
--
-- Does nothing and returns null if the result does not count, or if the run is not an ordinary one: it was cancelled, its task
-- has gates, it holds permits, or it belongs to a node. finish_runs decides about these.
--
-- Locks: live, token by (task, instant), held, gate by id, then as hand_over, the event log, the minute's activity.
create or replace function finish_run(
  p_run uuid, p_lease integer, p_worker uuid, p_reason text, p_exit_code integer, p_started timestamptz, p_at timestamptz,
  p_result json, p_lanes text[], p_places text[], p_incarnations text[], p_free text[], p_until timestamptz, p_max_bytes integer,
  out applied integer, out created integer, out killed integer, out lanes text[], out handed json
) language plpgsql as $$
declare
  v_run record; v_next record; v_runs record; v_gates record;
begin
  delete from live
   using task k
   where live.id = p_run and live.lease = p_lease and live.claimed_at is not null
     and live.worker_id = coalesce(p_worker, live.worker_id)
     and not live.cancel and live.permits is null
     and k.id = live.task_id and k.gates is null
  returning live.task_id, live.instant, live.origin, live.version, live.attempt, live.priority, live.worker_id, live.cause,
            live.queued_at, coalesce(p_started, live.claimed_at) as started_at, coalesce(p_result, live.result) as result,
            end_body(k.job_id, k.id, live.instant, live.attempt, live.priority, 'success', p_reason, false) as body
       into v_run;
  if not found then
    return;
  end if;
  insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason,
                   exit_code, cause, queued_at, started_at, finished_at, result)
  values (p_run, v_run.task_id, v_run.instant, v_run.origin, v_run.version, v_run.attempt, v_run.priority, p_lease,
          v_run.worker_id, 'success', p_reason, p_exit_code, v_run.cause, v_run.queued_at, v_run.started_at, p_at,
          v_run.result);
  select array_agg(a.task_id) as tasks, array_agg(a.instant) as instants, array_agg(a.n) as counts,
         array_agg(v_run.priority) as priorities, array_agg(p_run) as causes
    into v_next
    from (
      select e.child_id as task_id, v_run.instant + e.offset_ms * interval '1 millisecond' as instant,
             count(*)::integer as n
        from task_edge e
       where e.parent_id = v_run.task_id and e.kind in ('success', 'done')
         and v_run.instant + e.offset_ms * interval '1 millisecond' < end_of_time()
       group by 1, 2
    ) as a;
  v_runs := count_tokens(v_next.tasks, v_next.instants, v_next.counts, v_next.priorities, v_next.causes, null, p_at);
  v_gates := work_gates(v_runs.gates, null, null, null, p_at);
  if p_lanes is not null then
    handed := hand_over(p_lanes, p_places, p_incarnations, p_free, p_until, p_at, p_max_bytes);
  end if;
  perform append_run_events(
    p_run || v_gates.ended, v_run.body || v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'worker', p_at,
    (p_at, 1, 0, 0, 0, coalesce(cardinality(v_gates.ended), 0), 1, w.wait, w.wait, 0, '0', '0')::activity)
    from (select greatest(v_run.started_at - v_run.queued_at, '0') as wait) as w;
  applied := 1;
  created := coalesce(cardinality(v_runs.created), 0) + v_gates.passed;
  killed := v_gates.killed;
  lanes := case when v_gates.passed = 0 then v_runs.lanes end;
end $$;
