-- Applies changed limits to the runs of tasks of one job. Queued runs go back to their first gate. Running runs get the
-- permits that they would need now, even if that exceeds a limit.
--
-- This covers the runs that exist when it begins. A run that a concurrent stage adds keeps the permits that it has taken and
-- gives them back at its end.
--
-- Locks: live by id, then gate by id.
create or replace function regate_tasks(p_tasks uuid[], p_at timestamptz) returns void language plpgsql as $$
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
  -- with a limit of instants, the instants of running runs become active; without one, no instant needs to be
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
