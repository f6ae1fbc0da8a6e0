-- Applies reported results (I3). A result counts only if it names the current lease of its run, and comes from the worker that
-- holds it (p_workers; null: any). The result, its retry or the tokens of the tasks that follow, and the events are one commit.
--
-- p_runs may contain a run more than once. One of these results counts. A run has no retry and nothing that follows it if it
-- belongs to a node: its execution is told (tell_nodes), and decides. The result that a report carries wins over one that the task has
-- sent before. `owners`: those of the executions that were told.
--
-- With p_lanes, runs that are ready now leave for the given places in the same commit (hand_over). Often these are the runs that
-- the results have just made ready, so that a hand-over from parent to child takes one commit.
--
-- Locks: live by id, token by (task, instant), held, gate by id, inbox, then as hand_over, the event log, the minute's activity.
create or replace function finish_runs(
  p_runs uuid[], p_leases integer[], p_states run_state[], p_reasons text[], p_exit_codes integer[],
  p_started timestamptz[], p_at timestamptz, p_results json[] default null, p_workers uuid[] default null,
  p_lanes text[] default null, p_places text[] default null, p_incarnations text[] default null,
  p_free text[] default null,
  p_until timestamptz default null, p_max_bytes integer default null,
  out applied integer, out created integer, out retries integer, out killed integer, out lanes text[], out handed json,
  out owners uuid[]
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_finished uuid[]; v_bodies text[];
  v_tasks uuid[]; v_instants timestamptz[]; v_counts integer[]; v_priorities priority[]; v_causes uuid[];
  v_one record; v_held record; v_runs record; v_gates record;
  v_nodes uuid[]; v_states run_state[]; v_reasons text[]; v_exit_codes integer[]; v_results json[];
  v_left uuid[]; v_jobs uuid[]; v_over timestamptz[];
  v_activity activity;
begin
  if cardinality(p_runs) = 1 and p_states[1] = 'success' then
    v_one := finish_run(
      p_runs[1], p_leases[1], p_workers[1], p_reasons[1], p_exit_codes[1], p_started[1], p_at, p_results[1],
      p_lanes, p_places, p_incarnations, p_free, p_until, p_max_bytes);
    if v_one.applied = 1 then
      applied := 1;
      created := v_one.created;
      retries := 0;
      killed := v_one.killed;
      lanes := v_one.lanes;
      handed := v_one.handed;
      return;
    end if;
  end if;
  v_held := lock_runs(p_runs, p_leases, p_workers);
  with finished as (
    delete from live
     using unnest(v_held.spots, v_held.numbers) as h (spot, n)
     where live.ctid = h.spot
    returning live.*, case when live.cancel and p_states[h.n] <> 'success' then 'cancelled' else p_states[h.n] end as state,
              coalesce(case when p_states[h.n] <> 'success' then live.cancel_reason end, p_reasons[h.n]) as reason,
              p_exit_codes[h.n] as exit_code, p_started[h.n] as started_at, coalesce(p_results[h.n], live.result) as made
  ),
  recorded as (
    insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason,
                     exit_code, cause, queued_at, started_at, finished_at, result)
    select id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason,
           exit_code, cause, queued_at, coalesce(started_at, claimed_at), p_at, made
      from finished
  ),
  judged as materialized (
    select f.*, k.job_id, k.gates[1] = k.job_id as instants_limited,
           coalesce(f.state = any (k.retry_on) and f.attempt < k.max_attempts and k.removed_at is null, false) as again,
           least(k.retry_delay_ms * k.retry_factor ^ least(f.attempt - 1, 60), coalesce(k.retry_cap_ms, 3.2e12))
             * (1 - k.retry_jitter * random()) as delay_ms
      from finished f
      left join task k on k.id = f.task_id
  ),
  retried as (
    insert into retry (run_id, task_id, instant, attempt, priority, due_at)
    select id, task_id, instant, attempt + 1, priority, p_at + delay_ms * interval '1 millisecond'
      from judged
     where again
    returning 1
  ),
  arrived as (
    select e.child_id as task_id, j.instant + e.offset_ms * interval '1 millisecond' as instant,
           count(*)::integer as n, max(j.priority) as priority, (array_agg(j.id))[1] as cause
      from judged j
      join task_edge e on e.parent_id = j.task_id
     where not j.again and j.state <> 'cancelled'
       and j.instant + e.offset_ms * interval '1 millisecond' < end_of_time()
       and (e.kind = 'done' or (e.kind = 'success') = (j.state = 'success'))
     group by 1, 2
  ),
  arrivals as (
    select array_agg(task_id) as tasks, array_agg(instant) as instants, array_agg(n) as counts,
           array_agg(priority) as priorities, array_agg(cause) as causes
      from arrived
  ),
  results as (
    select array_agg(id) as ids,
           array_agg(end_body(
             job_id, task_id, instant, attempt, priority, state, reason, again,
             case when task_id is null then (select n.execution_id from node_run n where n.run_id = judged.id) end,
             case when task_id is null then (select n.nid from node_run n where n.run_id = judged.id) end)) as bodies,
           array_agg(job_id) filter (where instants_limited) as jobs,
           array_agg(instant) filter (where instants_limited) as over
      from judged
  ),
  of_nodes as (
    select array_agg(id) as ids, array_agg(state) as states, array_agg(reason) as reasons, array_agg(exit_code) as exit_codes,
           array_agg(made) as results
      from judged
     where task_id is null
  ),
  ended as (
    select case when count(*) > 0 then p_at end as at,
           count(*) filter (where state = 'success') as success, count(*) filter (where state = 'failure') as failure,
           count(*) filter (where state = 'timeout') as timeout, count(*) filter (where state = 'error') as error,
           count(*) filter (where state = 'cancelled') as cancelled,
           count(*) as started, sum(wait) as wait, max(wait) as worst_wait
      -- whose clock is behind has not started before it was queued
      from (select state, greatest(coalesce(started_at, claimed_at) - queued_at, '0') as wait from finished) as f
  )
  select r.ids, r.bodies, r.jobs, r.over, a.tasks, a.instants, a.counts, a.priorities, a.causes,
         (select count(*) from retried),
         (select array_agg(u.id) from finished f cross join unnest(f.permits) as u (id)),
         n.ids, n.states, n.reasons, n.exit_codes, n.results,
         e.at, e.success, e.failure, e.timeout, e.error, e.cancelled, e.started, e.wait, e.worst_wait
    into v_finished, v_bodies, v_jobs, v_over, v_tasks, v_instants, v_counts, v_priorities, v_causes, retries, v_left,
         v_nodes, v_states, v_reasons, v_exit_codes, v_results,
         v_activity.at, v_activity.success, v_activity.failure, v_activity.timeout, v_activity.error,
         v_activity.cancelled, v_activity.started, v_activity.wait, v_activity.worst_wait
    from results r, arrivals a, of_nodes n, ended e;
  v_runs := count_tokens(v_tasks, v_instants, v_counts, v_priorities, v_causes, null, p_at);
  v_gates := work_gates(v_runs.gates, v_left, v_jobs, v_over, p_at);
  applied := coalesce(cardinality(v_finished), 0);
  killed := v_gates.killed;
  created := coalesce(cardinality(v_runs.created), 0) + v_gates.passed;
  lanes := case when v_gates.passed = 0 then v_runs.lanes end;
  v_activity.cancelled := v_activity.cancelled + coalesce(cardinality(v_gates.ended), 0);
  if v_nodes is not null then
    owners := tell_nodes(v_nodes, v_states, v_reasons, v_exit_codes, v_results, p_at);
  end if;
  -- before the event log is locked: others wait for that lock
  if p_lanes is not null then
    handed := hand_over(p_lanes, p_places, p_incarnations, p_free, p_until, p_at, p_max_bytes);
  end if;
  perform append_run_events(
    v_finished || v_gates.ended, v_bodies || v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'worker', p_at,
    v_activity);
end $$;
