-- Gates: what limits how much runs at once. A job's gate lets through as many instants as its max_active_instants, a
-- task's as many runs as its max_running, a pool's as many runs, of whatever job, as it has places.
--
-- A run of a limited task is made waiting at its first gate (live.gate) and is no claim's business until it has passed
-- all of them; then it holds permits of its task's and pool's gates until it ends, whatever is edited meanwhile. Only
-- work_gates lets runs through, and it holds the rows of all gates concerned: that makes every limit exact under any
-- concurrency. Instants of a job are counted by the same lock: an instant is active from the moment its first run
-- passes until no run, retry or held token of it is left.
--
-- Gates are locked by id after tokens and held; runs that wait are taken with skip locked only, since their rows come
-- earlier in the lock order. Who is skipped is found by the next sweep.

-- What the tasks of a set need to pass, task's and pool's gates only.
create function permits_of(p_gates uuid[], p_job uuid) returns uuid[] language sql immutable as $$
  select case when p_gates[1] = p_job then p_gates[2:] else p_gates end
$$;

-- Gives back what runs held, ends instants that are over, and lets through whoever may pass now at these gates and at
-- those that follow. Answers how many runs passed, the waiting runs that an overlap rule ended (with their events'
-- bodies), and how many running ones are to be killed.
create function work_gates(
  p_gates uuid[], p_left uuid[], p_jobs uuid[], p_instants timestamptz[], p_at timestamptz,
  out passed integer, out ended uuid[], out bodies text[], out killed integer
) language plpgsql as $$
declare
  v_gates uuid[] := coalesce(p_gates, '{}') || coalesce(p_left, '{}') || coalesce(p_jobs, '{}');
  v_jobs uuid[];
  v_over record;
begin
  passed := 0;
  killed := 0;
  if v_gates = '{}' then
    return;
  end if;
  -- and the gates that follow: of a job's gate all of its tasks', of another those of whom stands first there
  v_gates := array(
    select unnest(v_gates)
    union
    select unnest(k.gates) from task k where k.job_id = any (v_gates)
    union
    select unnest(h.gates)
      from unnest(v_gates) as g (id)
     cross join lateral (
       select k.gates
         from live v join task k on k.id = v.task_id
        where v.gate = g.id and not k.paused
        order by v.rank, v.id
        limit 1000
     ) as h
  );
  perform 1 from gate where id = any (v_gates) order by id for update;
  update gate set used = used - l.n
    from (select u.id, count(*)::integer as n from unnest(p_left) as u (id) group by 1) as l
   where gate.id = l.id;
  v_jobs := array(select id from gate where id = any (v_gates) and kind = 'job');
  if v_jobs <> '{}' then
    perform end_instants(p_jobs, p_instants);
    perform pass_instants(v_jobs, p_at);
    select * into v_over from overlap_instants(v_jobs, p_at);
    killed := v_over.killed;
    if v_over.ended is not null then
      ended := v_over.ended;
      bodies := v_over.bodies;
      update gate set used = used - l.n
        from (select u.id, count(*)::integer as n from unnest(v_over.permits) as u (id) group by 1) as l
       where gate.id = l.id;
      perform end_instants(v_over.jobs, v_over.instants);
      perform pass_instants(v_jobs, p_at);
    end if;
  end if;
  passed := pass_runs(v_gates);
end $$;

-- Instants of limited jobs that have nothing left to do are active no more.
create function end_instants(p_jobs uuid[], p_instants timestamptz[]) returns void language plpgsql as $$
begin
  with over as (
    delete from active_instant a
     using (select distinct d.job_id, d.instant from unnest(p_jobs, p_instants) as d (job_id, instant)) as d
     where a.job_id = d.job_id and a.instant = d.instant
       and not exists (
         select 1 from task k join live v on v.task_id = k.id and v.instant = d.instant where k.job_id = d.job_id)
       and not exists (
         select 1 from task k join retry r on r.task_id = k.id and r.instant = d.instant where k.job_id = d.job_id)
       and not exists (
         select 1 from task k join held h on h.task_id = k.id and h.instant = d.instant where k.job_id = d.job_id)
    returning a.job_id
  )
  update gate set used = used - o.n
    from (select job_id, count(*)::integer as n from over group by 1) as o
   where gate.id = o.job_id;
end $$;

-- Lets instants through their jobs' gates, in the order of their first runs' ranks; all runs of an active instant go on
-- to the next gate, or are ready.
create function pass_instants(p_jobs uuid[], p_at timestamptz) returns void language plpgsql as $$
begin
  with admitted as (
    insert into active_instant (job_id, instant, since)
    select g.id, w.instant, p_at
      from gate g
     cross join lateral (
       select h.instant
         from (
           select v.instant, v.rank
             from live v
             join task k on k.id = v.task_id
            where v.gate = g.id and not k.paused
              and not exists (select 1 from active_instant a where a.job_id = g.id and a.instant = v.instant)
            order by v.rank, v.id
            limit 1000
         ) as h
        group by h.instant
        order by min(h.rank), h.instant
        limit greatest(coalesce(g.capacity, 2147483647) - g.used, 0)
     ) as w
     where g.id = any (p_jobs)
    returning job_id
  )
  update gate set used = used + d.n
    from (select job_id, count(*)::integer as n from admitted group by 1) as d
   where gate.id = d.job_id;
  update live set gate = w.next
    from (
      select v.id, k.gates[2] as next
        from active_instant a
        join task k on k.job_id = a.job_id
       cross join lateral (
         select live.id from live
          where live.task_id = k.id and live.instant = a.instant and live.gate = a.job_id
            for update skip locked
       ) as v
       where a.job_id = any (p_jobs)
    ) as w
   where live.id = w.id;
end $$;

-- Lets runs through the gates of tasks and pools, in rank order. A run that finds another of its gates shut waits there:
-- so each waits at a gate that was full when it came, and is looked at when that gate has room.
create function pass_runs(p_gates uuid[]) returns integer language plpgsql as $$
declare
  v_passed integer := 0;
  v_turn record;
begin
  loop
    with room as (
      select id, coalesce(capacity, 2147483647) - used as free
        from gate
       where id = any (p_gates) and kind <> 'job' and used < coalesce(capacity, 2147483647)
    ),
    heads as materialized (
      select h.*
        from room
       cross join lateral (
         select v.id, v.rank, permits_of(k.gates, k.job_id) as needs
           from live v
           join task k on k.id = v.task_id
          where v.gate = room.id and not k.paused
            -- one that came after the gates were locked may need another
            and coalesce(permits_of(k.gates, k.job_id) <@ p_gates, true)
          order by v.rank, v.id
          limit least(room.free, 1000)
            for update of v skip locked
       ) as h
    ),
    wanting as (
      select h.id, n.gate_id, row_number() over (partition by n.gate_id order by h.rank, h.id) as place
        from heads h
       cross join unnest(h.needs) as n (gate_id)
    ),
    judged as materialized (
      select h.id, h.needs, s.shut
        from heads h
        left join (
          select w.id, (array_agg(w.gate_id))[1] as shut
            from wanting w
            join gate g on g.id = w.gate_id
           where w.place > coalesce(g.capacity, 2147483647) - g.used
           group by w.id
        ) as s on s.id = h.id
    ),
    through as (
      update live set gate = null, permits = j.needs
        from judged j
       where live.id = j.id and j.shut is null
      returning live.permits
    ),
    taken as (
      update gate set used = used + t.n
        from (select p.id, count(*)::integer as n from through cross join unnest(permits) as p (id) group by 1) as t
       where gate.id = t.id
    ),
    moved as (
      update live set gate = j.shut
        from judged j
       where live.id = j.id and live.gate <> j.shut
      returning 1
    )
    select (select count(*) from through) as passed, (select count(*) from moved) as moved into v_turn;
    v_passed := v_passed + v_turn.passed;
    exit when v_turn.passed + v_turn.moved = 0;
  end loop;
  return v_passed;
end $$;

-- What the overlap rules of these jobs make of instants that still wait at their gate. `skip`: they are cancelled.
-- `cancel_older`: only the newest arrival goes on waiting, older ones are cancelled, and so is what is queued or waits to
-- be retried of the active ones; what runs of them is to be killed. What comes at backfill priority waits its turn, and
-- gives way to nobody.
create function overlap_instants(
  p_jobs uuid[], p_at timestamptz,
  out ended uuid[], out bodies text[], out permits uuid[], out jobs uuid[], out instants timestamptz[], out killed integer
) language plpgsql as $$
declare
  v_runs uuid[];
begin
  killed := 0;
  v_runs := array(
    select w.id
      from (
        select v.id, v.instant, g.overlap, v.gate,
               first_value(v.instant) over (partition by v.gate order by v.queued_at desc, v.instant desc) as newest
          from live v
          join gate g on g.id = v.gate
          join task k on k.id = v.task_id
         where v.gate = any (p_jobs) and g.overlap <> 'queue' and v.priority <> 'backfill' and not k.paused
           and not exists (select 1 from active_instant a where a.job_id = v.gate and a.instant = v.instant)
      ) as w
     where w.overlap = 'skip' or w.instant <> w.newest
  );
  -- the active instants give way to one that waits
  with doomed as (
    select a.job_id, a.instant
      from active_instant a
      join gate g on g.id = a.job_id and g.overlap = 'cancel_older'
     where a.job_id = any (p_jobs)
       and exists (
         select 1 from live v join task k on k.id = v.task_id
          where v.gate = a.job_id and v.priority <> 'backfill' and not k.paused
            and not exists (select 1 from active_instant o where o.job_id = a.job_id and o.instant = v.instant))
  ),
  unretried as (
    delete from retry
     where run_id in (
       select r.run_id
         from doomed d
         join task k on k.job_id = d.job_id
         join retry r on r.task_id = k.id and r.instant = d.instant
        where r.priority <> 'backfill'
          -- one that is just being queued comes to our gate next
          for update of r skip locked)
  ),
  aimed as (
    select v.id, v.worker_id
      from doomed d
      join task k on k.job_id = d.job_id
      join live v on v.task_id = k.id and v.instant = d.instant
     where not v.cancel and v.priority <> 'backfill'
       for update of v skip locked
  ),
  marked as (
    update live set cancel = true, cancel_reason = 'gave way to another instant of its job (overlap)'
     where live.id in (select id from aimed where worker_id is not null)
    returning 1
  )
  select v_runs || array(select id from aimed where worker_id is null), (select count(*) from marked),
         array(select job_id from doomed), array(select instant from doomed)
    into v_runs, killed, jobs, instants;
  if v_runs = '{}' and jobs = '{}' then
    return;
  end if;
  select c.cancelled, c.bodies, c.permits into ended, bodies, permits
    from cancel_queued(v_runs, 'gave way to another instant of its job (overlap)', p_at) as c;
  ended := coalesce(ended, '{}');
end $$;

-- Ends runs that nobody has taken yet as cancelled: those of p_runs, skipping what others hold. Answers what is to be
-- told and given back; that is the caller's business.
create function cancel_queued(
  p_runs uuid[], p_reason text, p_at timestamptz,
  out cancelled uuid[], out bodies text[], out permits uuid[], out jobs uuid[], out instants timestamptz[]
) language plpgsql as $$
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
         array_agg(end_body(k.job_id, g.task_id, g.instant, g.attempt, g.priority, 'cancelled', p_reason, false)),
         (select array_agg(u.id) from gone cross join unnest(gone.permits) as u (id)),
         array_agg(k.job_id) filter (where k.gates[1] = k.job_id),
         array_agg(g.instant) filter (where k.gates[1] = k.job_id)
    into cancelled, bodies, permits, jobs, instants
    from gone g
    left join task k on k.id = g.task_id;
end $$;

-- Something that kept an instant of a limited job active is gone (a retry, a held token): it may be over.
create function end_waits(p_jobs uuid[], p_instants timestamptz[], p_actor text, p_at timestamptz)
returns void language plpgsql as $$
declare
  v_gates record;
begin
  select w.* into v_gates
    from (
      select array_agg(g.id) as jobs, array_agg(d.instant) as instants
        from unnest(p_jobs, p_instants) as d (job_id, instant)
        join gate g on g.id = d.job_id
    ) as l, lateral work_gates(null, null, l.jobs, l.instants, p_at) as w;
  perform append_run_events(v_gates.ended, v_gates.bodies, null, null, null, p_actor, p_at);
end $$;

-- Sets the limits of a job's tasks as its document says (null: none). Pools that do not exist yet are made with one
-- place; answers their names. Who may pass now is the next sweep's business.
create function set_limits(
  p_job uuid, p_instants integer, p_overlap text, p_tasks uuid[], p_running integer[], p_pools text[], p_at timestamptz
) returns text[] language plpgsql as $$
declare
  v_made text[];
  v_changed uuid[];
begin
  with made as (
    insert into gate (id, kind, name, capacity)
    select new_id(), 'pool', p.name, 1
      from (select distinct unnest(p_pools) as name order by 1) as p
     where p.name is not null
    on conflict do nothing
    returning name
  )
  select array_agg(name) into v_made from made;
  with wanted as (
    select t.id, nullif(array_remove(array[
             case when p_instants is not null then p_job end,
             case when t.running is not null then t.id end,
             (select gate.id from gate where gate.name = t.pool)], null), '{}') as gates
      from unnest(p_tasks, p_running, p_pools) as t (id, running, pool)
  ),
  changed as (
    update task set gates = w.gates
      from wanted w
     where task.id = w.id and task.gates is distinct from w.gates
    returning task.id
  )
  select array_agg(id) into v_changed from changed;
  insert into gate as g (id, kind, capacity, overlap)
  select l.id, l.kind, l.capacity, coalesce(p_overlap, 'queue')
    from (
      select p_job as id, 'job' as kind, p_instants as capacity
      union all
      select t.id, 'task', t.running from unnest(p_tasks, p_running) as t (id, running)
    ) as l
   where l.capacity is not null or exists (select 1 from gate where gate.id = l.id)
   order by 1
  on conflict (id) do update set capacity = excluded.capacity, overlap = excluded.overlap
   where g.capacity is distinct from excluded.capacity or g.overlap <> excluded.overlap;
  if v_changed is not null then
    perform regate_tasks(v_changed, p_at);
  end if;
  return coalesce(v_made, '{}');
end $$;

-- Limits of these tasks, of one job, are others now: what is queued goes back to the first gate; what runs holds the
-- permits it would need, though that may be more than there are. This is about the runs there are when it begins; one
-- that a stage under way adds meanwhile holds what it has taken, and gives it back at its end.
create function regate_tasks(p_tasks uuid[], p_at timestamptz) returns void language plpgsql as $$
declare
  v_runs uuid[] := array(select id from live where task_id = any (p_tasks) order by id for update);
  v_left uuid[];
begin
  v_left := array(select u.id from live v cross join unnest(v.permits) as u (id) where v.id = any (v_runs));
  perform 1 from gate
   where id = any (v_left || array(select distinct unnest(gates) from task where id = any (p_tasks)))
   order by id for update;
  update live set
    gate = case when live.worker_id is null then k.gates[1] end,
    permits = case when live.worker_id is not null then nullif(permits_of(k.gates, k.job_id), '{}') end
    from task k
   where k.id = live.task_id and live.id = any (v_runs);
  update gate set used = used + d.n
    from (
      select u.id, sum(u.n)::integer as n
        from (
          select p.id, 1 as n from live v cross join unnest(v.permits) as p (id) where v.id = any (v_runs)
          union all
          select l.id, -1 from unnest(v_left) as l (id)
        ) as u
       group by 1
    ) as d
   where gate.id = d.id;
  -- with a limit of instants those that run are active; without one none needs to be
  with begun as (
    insert into active_instant (job_id, instant, since)
    select distinct k.job_id, v.instant, p_at
      from live v join task k on k.id = v.task_id
     where v.id = any (v_runs) and v.worker_id is not null and k.gates[1] = k.job_id
    on conflict do nothing
    returning job_id
  ),
  freed as (
    delete from active_instant a
     where a.job_id in (select k.job_id from task k where k.id = any (p_tasks) and k.gates[1] is distinct from k.job_id)
    returning a.job_id
  )
  update gate set used = used + d.n
    from (
      select u.job_id, sum(u.n)::integer as n
        from (select job_id, 1 as n from begun union all select job_id, -1 from freed) as u
       group by 1
    ) as d
   where gate.id = d.job_id;
end $$;

-- The sweep: works gates at which somebody waits although there is room, and puts right what waits at a gate that its
-- task no longer has. Ends instants that nobody else ended. Of more than p_limit others come each time.
create function sweep_gates(p_limit integer, p_at timestamptz, out passed integer, out killed integer) language plpgsql as $$
declare
  v_result record;
  v_gates uuid[]; v_jobs uuid[]; v_instants timestamptz[];
begin
  update live set gate = w.gate
    from (
      select v.id, k.gates[1] as gate
        from live v join task k on k.id = v.task_id
       where v.gate is not null and not coalesce(v.gate = any (k.gates), false)
       limit p_limit
         for update of v skip locked
    ) as w
   where live.id = w.id;
  v_gates := array(
    select g.id from gate g
     where (g.kind = 'job' or g.used < coalesce(g.capacity, 2147483647))
       and exists (select 1 from live v join task k on k.id = v.task_id where v.gate = g.id and not k.paused)
     order by md5(concat(g.id, p_at)) limit p_limit);
  select array_agg(a.job_id), array_agg(a.instant) into v_jobs, v_instants
    from (select job_id, instant from active_instant order by md5(concat(job_id, instant, p_at)) limit p_limit) as a;
  select * into v_result from work_gates(v_gates, null, v_jobs, v_instants, p_at);
  perform append_run_events(v_result.ended, v_result.bodies, null, null, null, 'scheduler', p_at);
  passed := v_result.passed;
  killed := v_result.killed;
end $$;
