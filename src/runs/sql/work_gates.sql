-- Gives permits back, ends instants that are over, and admits runs that may pass now, at the given gates and at the gates
-- that follow them. Returns how many runs passed, the waiting runs that an overlap rule ended (with the bodies of their
-- events), and how many running ones are to be killed.
--
-- A gate limits how much runs at once. A job's gate admits max_active_instants instants, a task's gate max_running runs, a
-- pool's gate as many runs of any job as the pool has places. A run of a limited task is created waiting at its first gate
-- (live.gate), and no claim sees it before it has passed all of them. It then holds permits of its task's and pool's gates
-- until it ends, even if the limits are edited meanwhile. An instant is active from the moment its first run passes until it
-- has no run, retry or held token left.
--
-- Only this function admits runs, and it holds the rows of all gates concerned. Every limit is therefore exact under any
-- concurrency.
--
-- Locks: gate by id, after token and held. Waiting runs come earlier in the lock order, so they are locked with skip locked.
-- The next sweep (sweep_gates) finds those that were skipped.
create or replace function work_gates(
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
