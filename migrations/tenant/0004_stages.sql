-- The stages of the pipeline. Each is one call, hence one commit, over a whole batch: the writes, then the events.
--
-- Lock order everywhere: backfill, firing, trigger by id, live by id, token by (task, instant), held, gate by id, then
-- the event log, and under its lock the minute's activity. Whoever breaks it deadlocks.
-- Times are parameters (p_at), never now(): the caller's clock is disciplined to this server's, and tests move it.
-- Joins between two sets of rows made in the statement itself are avoided: the planner knows nothing about either and
-- picks a nested loop of n x m. What a later step needs is carried along in the row instead. The stages that run all the
-- time keep their plans (making them took longer than following them, for a run or two), and find rows by index only,
-- since a plan is often made while a table is empty.

-- How far ahead of its queue time a run of each priority is placed: a backfill waits at most that much longer.
create function head_start(p_priority priority) returns interval language sql immutable as $$
  select case p_priority
    when 'high' then interval '4 hours'
    when 'normal' then interval '1 hour'
    when 'low' then interval '15 minutes'
    else interval '0'
  end
$$;

-- A cycle with an offset moves on for ever; its tokens end with what people can write down.
create function end_of_time() returns timestamptz language sql immutable as $$
  select timestamptz '10000-01-01 00:00:00+00'
$$;

-- What events say of a run. Put together as text: a third of what json_build_object takes, once for every run.
create function run_body(p_job uuid, p_task uuid, p_instant timestamptz, p_attempt integer, p_priority priority)
returns text language sql stable as $$
  select concat('{"job":"', p_job, '","task":"', p_task, '","instant":', to_json(p_instant), ',"attempt":', p_attempt,
                ',"priority":"', p_priority, '"}')
$$;

create function end_body(
  p_job uuid, p_task uuid, p_instant timestamptz, p_attempt integer, p_priority priority,
  p_state run_state, p_reason text, p_retry boolean
) returns text language sql stable as $$
  select concat('{"job":"', p_job, '","task":"', p_task, '","instant":', to_json(p_instant), ',"attempt":', p_attempt,
                ',"priority":"', p_priority, '","state":"', p_state, '","reason":', coalesce(to_json(p_reason)::text, 'null'),
                ',"retry":', case when p_retry then 'true' else 'false' end, '}')
$$;

-- Counts what happened into its minute. Only under the event log's lock: there is one row that everybody wants.
create function add_activity(p_activity activity) returns void language plpgsql as $$
begin
  insert into activity as a (at, success, failure, timeout, error, cancelled, started, wait, worst_wait,
                             fired, late, worst_late)
  values (date_trunc('minute', p_activity.at, 'UTC'), coalesce(p_activity.success, 0), coalesce(p_activity.failure, 0),
          coalesce(p_activity.timeout, 0), coalesce(p_activity.error, 0), coalesce(p_activity.cancelled, 0),
          coalesce(p_activity.started, 0), coalesce(p_activity.wait, '0'), coalesce(p_activity.worst_wait, '0'),
          coalesce(p_activity.fired, 0), coalesce(p_activity.late, '0'), coalesce(p_activity.worst_late, '0'))
  on conflict (at) do update set
    success = a.success + excluded.success, failure = a.failure + excluded.failure,
    timeout = a.timeout + excluded.timeout, error = a.error + excluded.error,
    cancelled = a.cancelled + excluded.cancelled, started = a.started + excluded.started,
    wait = a.wait + excluded.wait, worst_wait = greatest(a.worst_wait, excluded.worst_wait),
    fired = a.fired + excluded.fired, late = a.late + excluded.late,
    worst_late = greatest(a.worst_late, excluded.worst_late);
end $$;

-- Events of the run topic: finished ones first, then those created, in one append. p_activity says how those ended, and
-- what fired; where nobody says it, they were cancelled before they started.
create function append_run_events(
  p_finished uuid[], p_finished_bodies text[], p_created uuid[], p_created_causes uuid[], p_created_bodies text[],
  p_actor text, p_at timestamptz, p_activity activity default null
) returns void language plpgsql as $$
declare
  v_activity activity := p_activity;
begin
  if v_activity.at is null and p_finished <> '{}' then
    v_activity.at := p_at;
    v_activity.cancelled := cardinality(p_finished);
  end if;
  if v_activity.at is null and p_finished is null and p_created is null then
    return;
  end if;
  perform open_event_log(coalesce(cardinality(p_finished), 0) + coalesce(cardinality(p_created), 0));
  insert into event (seq, topic_id, type, subject, actor, cause, at, body)
  select nextval('event_seq'), 3, e.type, e.subject, p_actor, e.cause, p_at, e.body
    from (
      select 'run.finished' as type, f.subject, null::uuid as cause, f.body
        from unnest(p_finished, p_finished_bodies) as f (subject, body)
      union all
      select 'run.created', c.subject, c.cause, c.body
        from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body)
    ) as e;
  if v_activity.at is not null then
    perform add_activity(v_activity);
  end if;
end $$;

-- Counts tokens up, and where the threshold is reached takes it off and creates the runs: one guarded statement (I2).
-- (task, instant) must be distinct. Division gives all the runs that the sum releases at once; a paused task's reach is
-- beyond any sum, so its tokens only collect. Runs of one call share a rank and are handed out by id, so they are made
-- in the order that p_order says (earliest, latest or random instant first; null: any).
create function count_tokens(
  p_tasks uuid[], p_instants timestamptz[], p_counts integer[], p_priorities priority[], p_causes uuid[],
  p_order text, p_at timestamptz,
  out created uuid[], out causes uuid[], out bodies text[], out gates uuid[], out lanes text[]
) language plpgsql as $$
begin
  with counted as (
    insert into token as t (task_id, instant, count, fire, reach, priority, cause)
    select a.task_id, a.instant, a.n % k.reach, a.n / k.reach, k.reach, a.priority, a.cause
      from unnest(p_tasks, p_instants, p_counts, p_priorities, p_causes) as a (task_id, instant, n, priority, cause)
      join lateral (
        select case when task.paused then 2147483647 else task.threshold end as reach
          from task
         where task.id = a.task_id
      ) as k on true
     order by 1, 2
    on conflict (task_id, instant) do update set
      count = (t.count + excluded.count + excluded.fire * excluded.reach) % excluded.reach,
      fire = (t.count + excluded.count + excluded.fire * excluded.reach) / excluded.reach,
      reach = excluded.reach,
      priority = case when t.count > 0 then greatest(t.priority, excluded.priority) else excluded.priority end,
      cause = excluded.cause
    returning t.task_id, t.instant, t.count, t.fire, t.reach, t.priority, t.cause
  ),
  held_back as (
    insert into held (task_id, instant, reason)
    select c.task_id, c.instant, 'paused'
      from counted c
      join task k on k.id = c.task_id
     where c.reach = 2147483647 and c.count >= k.threshold
    on conflict do nothing
  ),
  made as materialized (
    select new_id() as id, c.task_id, c.instant, c.priority, c.cause, k.version, k.lane, k.gates[1] as gate, k.job_id
      from counted c
      join task k on k.id = c.task_id
     cross join generate_series(1, c.fire)
     where c.fire > 0
     order by case p_order
       when 'earliest' then extract(epoch from c.instant)
       when 'latest' then -extract(epoch from c.instant)
       when 'random' then random()::numeric
     end
  ),
  readied as (
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, gate, cause, queued_at)
    select id, task_id, instant, version, 1, priority, lane, p_at - head_start(priority), gate, cause, p_at from made
  )
  select array_agg(id), array_agg(cause), array_agg(run_body(job_id, task_id, instant, 1, priority)),
         array_agg(gate) filter (where gate is not null), array_agg(distinct lane) filter (where gate is null)
    into created, causes, bodies, gates, lanes
    from made;
end $$;

-- Fires instants of triggers: each once per cause (I1), in the same commit as the tokens it puts. p_dues are the times at
-- which they were due, each of another trigger; null where they were missed, and lateness says nothing. Answers in which
-- lanes runs have become ready; null: in any.
create function fire_triggers(
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
  -- firings of long ago are gone: below a trigger's low-water mark nothing fires by schedule again
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
  select * into v_runs from count_tokens(v_tasks, v_instants, v_counts, v_priorities, v_causes, p_order, p_at);
  created := coalesce(cardinality(v_runs.created), 0);
  select * into v_gates from work_gates(v_runs.gates, null, null, null, p_at);
  killed := v_gates.killed;
  lanes := case when v_gates.passed = 0 then v_runs.lanes end;
  if p_dues is not null and fired > 0 then
    -- all of them, but where some had fired before, and only the answer was lost
    select p_at, count(*), sum(greatest(p_at - d.due, '0')), max(greatest(p_at - d.due, '0')),
           cardinality(v_gates.ended)
      into v_activity.at, v_activity.fired, v_activity.late, v_activity.worst_late, v_activity.cancelled
      from unnest(p_triggers, p_dues) as d (trigger_id, due)
     where fired = cardinality(p_triggers) or d.trigger_id = any (v_first);
  end if;
  perform append_run_events(
    v_gates.ended, v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'scheduler', p_at, v_activity);
end $$;

-- Moves the marks of triggers outwards: what lies between them has been fired, skipped, or noted for catch-up. Marks may
-- lag: those of a trigger that is being edited are left for its next instant, rather than have all others wait.
create function move_triggers(p_triggers uuid[], p_instants timestamptz[]) returns void language plpgsql as $$
declare
  v_free uuid[] := array(
    select id from trigger where id = any (p_triggers) order by id for no key update skip locked);
begin
  update trigger t
     set earliest = least(t.earliest, m.earliest), latest = greatest(t.latest, m.latest)
    from (
      select d.id, min(d.instant) as earliest, max(d.instant) as latest
        from unnest(p_triggers, p_instants) as d (id, instant)
       group by d.id
    ) as m
   where t.id = m.id and t.id = any (v_free);
end $$;

-- Parks what is queued of these paused tasks. None keeps what it holds of a limit: who is not paused shall have it.
create function park_runs(p_tasks uuid[], p_at timestamptz) returns void language plpgsql as $$
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

-- Hands ready runs to places: the n-th run in rank order goes to the n-th place. Each hand-out bumps the lease (I4).
-- Runs whose job was paused after they were queued are parked instead, with all others of their tasks, and their places
-- go to the next: a long queue of a paused job must not hide what stands behind it.
-- Rows are found again by where they are (ctid), which cannot change while they are locked: a join by id would go
-- through the whole table whenever the planner believes it to be empty. Runs of a lower rank than p_floor are passed over.
create function claim_runs(
  p_lanes text[], p_workers uuid[], p_incarnations bigint[], p_until timestamptz, p_at timestamptz,
  p_floor timestamptz default '-infinity'
) returns table (
  id uuid, task_id uuid, instant timestamptz, version integer, attempt integer, priority priority,
  lease integer, worker_id uuid, params json, rank timestamptz
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_workers uuid[] := p_workers;
  v_incarnations bigint[] := p_incarnations;
  v_spots tid[]; v_tasks uuid[];
  v_given integer;
begin
  loop
    select array_agg(c.spot), array_agg(c.task_id) into v_spots, v_tasks
      from (
        select r.spot, r.task_id
          from unnest(p_lanes) as l (lane)
         cross join lateral (
           select live.ctid as spot, live.task_id, live.rank, live.id
             from live
            where live.lane = l.lane and live.worker_id is null and not live.parked and live.gate is null
              and live.rank >= p_floor
            order by live.rank, live.id
            limit cardinality(v_workers)
              for update skip locked
         ) as r
         order by r.rank, r.id
         limit cardinality(v_workers)
      ) as c;
    exit when v_spots is null;
    insert into lease as w (worker_id, incarnation, until)
    select p.worker, max(p.incarnation), p_until
      from unnest(v_workers[:cardinality(v_spots)], v_incarnations[:cardinality(v_spots)]) as p (worker, incarnation)
     group by 1
     order by 1
    on conflict (worker_id) do update set
      until = greatest(w.until, excluded.until),
      incarnation = greatest(w.incarnation, excluded.incarnation);
    return query
    with claimed as (
      update live
         set worker_id = v_workers[h.n], incarnation = v_incarnations[h.n], lease = live.lease + 1, claimed_at = p_at
        from unnest(v_spots, v_tasks) with ordinality as h (spot, task_id, n)
        -- a flow's run has no task, and nothing that pauses it here
        left join task k on k.id = h.task_id
       where live.ctid = h.spot and not coalesce(k.paused, false)
      returning live.id, live.task_id, live.instant, live.version, live.attempt, live.priority, live.lease,
                live.worker_id, live.rank, k.job_id
    )
    select c.id, c.task_id, c.instant, c.version, c.attempt, c.priority, c.lease, c.worker_id,
           (select i.params from instant_params i where i.job_id = c.job_id and i.instant = c.instant), c.rank
      from claimed c
     order by c.rank, c.id;
    get diagnostics v_given = row_count;
    exit when v_given = cardinality(v_spots);
    -- a run that was handed out is no longer where it was
    select array_agg(p.worker order by p.n), array_agg(p.incarnation order by p.n) into v_workers, v_incarnations
      from unnest(v_workers, v_incarnations) with ordinality as p (worker, incarnation, n)
     where p.n > cardinality(v_spots) or exists (select 1 from live where live.ctid = v_spots[p.n]);
    perform park_runs(array(select k.id from task k where k.id = any (v_tasks) and k.paused), p_at);
    exit when v_workers is null;
  end loop;
end $$;

-- Locks those of these runs that are held under the lease named: where they are, and which of the list they are. By id,
-- because the same runs reported in two orders at once would deadlock (19 of 20 rounds). Each is looked up by itself, and
-- never by going through an index of all that are held, which the planner may believe to be none. That is why it asks for
-- claimed_at, which a run has exactly while it has a worker, and which has no index.
create function lock_runs(p_runs uuid[], p_leases integer[], out spots tid[], out numbers integer[])
language plpgsql as $$
begin
  select array_agg(v.spot), array_agg(r.n) into spots, numbers
    from (select * from unnest(p_runs, p_leases) with ordinality as r (id, lease, n) order by id) as r
   cross join lateral (
     select live.ctid as spot
       from live
      where live.id = r.id and live.lease = r.lease and live.claimed_at is not null
        for update
   ) as v;
end $$;

-- Applies results (I3): only those that name the current lease. Result, retry or tokens downstream, and events are one
-- commit. `p_runs` may hold a run more than once; one of them counts.
create function finish_runs(
  p_runs uuid[], p_leases integer[], p_states run_state[], p_reasons text[], p_exit_codes integer[],
  p_started timestamptz[], p_at timestamptz,
  out applied integer, out created integer, out retries integer, out killed integer, out lanes text[]
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_finished uuid[]; v_bodies text[];
  v_tasks uuid[]; v_instants timestamptz[]; v_counts integer[]; v_priorities priority[]; v_causes uuid[];
  v_held record; v_runs record; v_gates record;
  v_left uuid[]; v_jobs uuid[]; v_over timestamptz[];
  v_activity activity;
begin
  select * into v_held from lock_runs(p_runs, p_leases);
  with finished as (
    delete from live
     using unnest(v_held.spots, v_held.numbers) as h (spot, n)
     where live.ctid = h.spot
    returning live.*, case when live.cancel and p_states[h.n] <> 'success' then 'cancelled' else p_states[h.n] end as state,
              coalesce(case when p_states[h.n] <> 'success' then live.cancel_reason end, p_reasons[h.n]) as reason,
              p_exit_codes[h.n] as exit_code, p_started[h.n] as started_at
  ),
  recorded as (
    insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason,
                     exit_code, cause, queued_at, started_at, finished_at)
    select id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, reason,
           exit_code, cause, queued_at, coalesce(started_at, claimed_at), p_at
      from finished
  ),
  judged as materialized (
    select f.*, k.job_id, k.gates[1] = k.job_id as instants_limited,
           f.state = any (k.retry_on) and f.attempt < k.max_attempts and k.removed_at is null as again,
           least(k.retry_delay_ms * k.retry_factor ^ least(f.attempt - 1, 60), coalesce(k.retry_cap_ms, 3.2e12))
             * (1 - k.retry_jitter * random()) as delay_ms
      from finished f
      join task k on k.id = f.task_id
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
           array_agg(end_body(job_id, task_id, instant, attempt, priority, state, reason, again)) as bodies,
           array_agg(job_id) filter (where instants_limited) as jobs,
           array_agg(instant) filter (where instants_limited) as over
      from judged
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
         e.at, e.success, e.failure, e.timeout, e.error, e.cancelled, e.started, e.wait, e.worst_wait
    into v_finished, v_bodies, v_jobs, v_over, v_tasks, v_instants, v_counts, v_priorities, v_causes, retries, v_left,
         v_activity.at, v_activity.success, v_activity.failure, v_activity.timeout, v_activity.error,
         v_activity.cancelled, v_activity.started, v_activity.wait, v_activity.worst_wait
    from results r, arrivals a, ended e;
  select * into v_runs from count_tokens(v_tasks, v_instants, v_counts, v_priorities, v_causes, null, p_at);
  select * into v_gates from work_gates(v_runs.gates, v_left, v_jobs, v_over, p_at);
  applied := coalesce(cardinality(v_finished), 0);
  killed := v_gates.killed;
  created := coalesce(cardinality(v_runs.created), 0) + v_gates.passed;
  lanes := case when v_gates.passed = 0 then v_runs.lanes end;
  v_activity.cancelled := v_activity.cancelled + coalesce(cardinality(v_gates.ended), 0);
  perform append_run_events(
    v_finished || v_gates.ended, v_bodies || v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'worker', p_at,
    v_activity);
end $$;

-- Queues runs outright, whatever the tokens' counts are: activation by hand and due retries. The tokens' own counts are
-- the caller's business.
create function queue_runs(
  p_tasks uuid[], p_instants timestamptz[], p_attempts integer[], p_priorities priority[], p_causes uuid[], p_at timestamptz,
  out created uuid[], out causes uuid[], out bodies text[], out gates uuid[]
) language plpgsql as $$
begin
  with readied as (
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, parked, gate, cause, queued_at)
    select new_id(), a.task_id, a.instant, k.version, a.attempt, a.priority, k.lane,
           p_at - head_start(a.priority), k.paused, k.gates[1], a.cause, p_at
      from unnest(p_tasks, p_instants, p_attempts, p_priorities, p_causes) as a (task_id, instant, attempt, priority, cause)
      join task k on k.id = a.task_id
    returning id, task_id, instant, attempt, priority, gate, cause
  )
  select array_agg(r.id), array_agg(r.cause),
         array_agg(run_body(k.job_id, r.task_id, r.instant, r.attempt, r.priority)),
         array_agg(r.gate) filter (where r.gate is not null)
    into created, causes, bodies, gates
    from readied r
    join task k on k.id = r.task_id;
end $$;

-- Due retries become runs of the next attempt. Removed tasks get none.
create function queue_retries(p_limit integer, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_tasks uuid[]; v_instants timestamptz[]; v_attempts integer[]; v_priorities priority[]; v_causes uuid[];
  v_runs record; v_gates record;
begin
  with due as (
    delete from retry
     where run_id = any (array(
       select run_id from retry where due_at <= p_at order by due_at limit p_limit for update skip locked))
    returning *
  )
  select array_agg(d.task_id), array_agg(d.instant), array_agg(d.attempt), array_agg(d.priority), array_agg(d.run_id)
    into v_tasks, v_instants, v_attempts, v_priorities, v_causes
    from due d
    join task k on k.id = d.task_id and k.removed_at is null;
  select * into v_runs from queue_runs(v_tasks, v_instants, v_attempts, v_priorities, v_causes, p_at);
  select * into v_gates from work_gates(v_runs.gates, null, null, null, p_at);
  perform append_run_events(
    v_gates.ended, v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'scheduler', p_at);
  return coalesce(cardinality(v_runs.created), 0);
end $$;

-- Activates tokens by hand: each gets one run at once, though it is named twice, and its count starts again from
-- nothing, as if it had been full.
create function activate_tokens(p_tasks uuid[], p_instants timestamptz[], p_priority priority, p_actor text, p_at timestamptz)
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

-- Notes tokens that a lowered threshold has made full as held: they are released like any others.
create function hold_full_tokens(p_tasks uuid[]) returns void language sql as $$
  insert into held (task_id, instant, reason)
  select t.task_id, t.instant, 'threshold'
    from token t
    join task k on k.id = t.task_id
   where t.task_id = any (p_tasks) and t.count >= k.threshold
   order by 1, 2
  on conflict do nothing
$$;

-- Looks again at tasks whose threshold was lowered a moment ago; the next release lets go what it found.
create function sweep_lowered(p_at timestamptz) returns void language plpgsql as $$
begin
  if exists (select 1 from lowered) then
    perform hold_full_tokens(array(select task_id from lowered));
    delete from lowered where until < p_at;
  end if;
end $$;

-- Releases held tokens of tasks that may run again: every multiple of the threshold becomes a run, at the priority the
-- tokens came with. Also unparks runs that were queued when their job was paused.
create function release_tokens(p_limit integer, p_at timestamptz) returns integer language plpgsql as $$
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
  -- tokens before held, as everywhere
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
  -- counting nothing makes the token look at its threshold again
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

-- Clears an instant of a job: counts go back to nothing, what was held or to be retried is dropped. Runs that are
-- queued or running are left alone.
create function clear_tokens(p_job uuid, p_instant timestamptz, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_tasks uuid[] := array(select id from task where job_id = p_job order by id);
  v_cleared integer;
  v_gates record;
begin
  perform 1 from token where task_id = any (v_tasks) and instant = p_instant order by task_id for update;
  update token set count = 0, fire = 0, cleared_at = p_at, cause = null
   where task_id = any (v_tasks) and instant = p_instant;
  get diagnostics v_cleared = row_count;
  delete from held where task_id = any (v_tasks) and instant = p_instant;
  delete from retry where task_id = any (v_tasks) and instant = p_instant;
  perform end_waits(array[p_job], array[p_instant], 'scheduler', p_at);
  return v_cleared;
end $$;

-- Ends runs that are with nobody who could report them: cancelled where that was wished, else in error.
create function give_up_runs(p_runs uuid[], p_reason text, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_over record;
begin
  select array_agg(v.id) as ids, array_agg(v.lease) as leases,
         array_agg(case when v.cancel then 'cancelled' else 'error' end::run_state) as states,
         array_agg(case when v.cancel then 'cancelled' else p_reason end) as reasons,
         array_agg(null::integer) as exit_codes, array_agg(null::timestamptz) as started
    into v_over
    from live v
   where v.id = any (p_runs);
  return (
    select f.applied
      from finish_runs(v_over.ids, v_over.leases, v_over.states, v_over.reasons, v_over.exit_codes, v_over.started, p_at) f);
end $$;

-- Gives runs back unfinished: a worker that drains. Does not count as a loss. One that was to be cancelled is.
create function return_runs(p_runs uuid[], p_leases integer[], p_at timestamptz) returns integer language plpgsql as $$
declare
  v_held record;
  v_cancelled uuid[];
  v_returned integer;
begin
  select * into v_held from lock_runs(p_runs, p_leases);
  v_cancelled := array(select v.id from live v where v.ctid = any (v_held.spots) and v.cancel);
  update live set worker_id = null, incarnation = null, claimed_at = null
   where ctid = any (v_held.spots) and not cancel;
  get diagnostics v_returned = row_count;
  perform give_up_runs(v_cancelled, null, p_at);
  return v_returned;
end $$;

-- Which of these runs (null: of all) are lost, as it stands now.
create function lost_runs(p_among uuid[], p_slack interval, p_at timestamptz) returns uuid[] language sql volatile as $$
  select coalesce(array_agg(v.id), '{}')
    from live v
    left join lease w on w.worker_id = v.worker_id
   where v.worker_id is not null and (p_among is null or v.id = any (p_among))
     and (w.worker_id is null or w.until <= p_at or w.incarnation > v.incarnation
          or (w.beat_at > v.claimed_at + p_slack and not v.id = any (w.holds)))
$$;

-- Takes runs back from workers that are lost (I4): no lease, one that ran out, another incarnation, or a heartbeat more
-- than p_slack after the claim that does not name the run. A run lost three times ends in error, and one that was to be
-- cancelled is.
create function take_back_runs(p_slack interval, p_at timestamptz, out returned integer, out failed integer)
language plpgsql as $$
declare
  v_lost uuid[];
begin
  -- who may be lost, then, once their rows are ours and each statement sees what others did meanwhile, who is
  v_lost := lost_runs(null, p_slack, p_at);
  perform 1 from live where id = any (v_lost) order by id for update;
  v_lost := lost_runs(v_lost, p_slack, p_at);
  update live set worker_id = null, incarnation = null, claimed_at = null, losses = losses + 1
   where id = any (v_lost) and losses < 2 and not cancel;
  get diagnostics returned = row_count;
  failed := give_up_runs(array(select v.id from live v where v.id = any (v_lost) and v.worker_id is not null),
                         'its worker was lost three times', p_at);
end $$;

-- Cancels: what is queued ends at once, what runs is marked and killed by its worker. A retry that waits is dropped.
create function cancel_run(p_run uuid, p_actor text, p_at timestamptz, out outcome text) language plpgsql as $$
declare
  v_run live%rowtype;
  v_done record; v_gates record; v_retry record;
begin
  select * into v_run from live where id = p_run for update;
  if not found then
    delete from retry where run_id = p_run returning * into v_retry;
    outcome := case when found then 'cancelled' else 'finished' end;
    if found then
      perform end_waits(
        array[(select job_id from task where id = v_retry.task_id)], array[v_retry.instant], 'scheduler', p_at);
      perform append_events(3, array['retry.cancelled'], array[p_run], p_actor, array[null::uuid], p_at, array[
        run_body((select job_id from task where id = v_retry.task_id),
                 v_retry.task_id, v_retry.instant, v_retry.attempt, v_retry.priority)]);
    end if;
    return;
  end if;
  if v_run.worker_id is not null then
    update live set cancel = true, cancel_reason = 'cancelled by ' || p_actor where id = p_run and not cancel;
    -- its end will be its worker's doing: who wished for it is on record here
    if found then
      perform append_events(3, array['run.cancel_wished'], array[p_run], p_actor, array[null::uuid], p_at, array[
        run_body((select job_id from task where id = v_run.task_id), v_run.task_id, v_run.instant, v_run.attempt,
                 v_run.priority)]);
    end if;
    outcome := 'cancelling';
    return;
  end if;
  select * into v_done from cancel_queued(array[p_run], 'cancelled by ' || p_actor, p_at);
  select * into v_gates from work_gates(null, v_done.permits, v_done.jobs, v_done.instants, p_at);
  perform append_run_events(
    v_done.cancelled || v_gates.ended, v_done.bodies || v_gates.bodies, null, null, null, p_actor, p_at);
  outcome := 'cancelled';
end $$;
