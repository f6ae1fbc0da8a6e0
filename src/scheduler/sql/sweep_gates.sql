-- Admits runs at gates that have room, moves runs that wait at a gate that their task no longer has, and ends instants that
-- nothing else ended. If there are more than p_limit, each call takes another random choice.
--
-- Locks: live with skip locked, gate by id, the event log.
create or replace function sweep_gates(p_limit integer, p_at timestamptz, out passed integer, out killed integer) language plpgsql as $$
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
       and exists (
         select 1 from live v left join task k on k.id = v.task_id where v.gate = g.id and not coalesce(k.paused, false))
     order by md5(concat(g.id, p_at)) limit p_limit);
  select array_agg(a.job_id), array_agg(a.instant) into v_jobs, v_instants
    from (select job_id, instant from active_instant order by md5(concat(job_id, instant, p_at)) limit p_limit) as a;
  select * into v_result from work_gates(v_gates, null, v_jobs, v_instants, p_at);
  perform append_run_events(v_result.ended, v_result.bodies, null, null, null, 'scheduler', p_at);
  passed := v_result.passed;
  killed := v_result.killed;
end $$;
