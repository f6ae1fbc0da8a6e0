-- Applies the overlap rules of jobs to the instants that still wait at their gates. The caller holds the gates.
--
-- `skip`: waiting instants are cancelled. `cancel_older`: only the newest waiting instant stays; older waiting instants are
-- cancelled, and so are the queued runs and pending retries of active instants; their running runs are to be killed. Runs of
-- priority backfill wait their turn and never give way.
--
-- Locks: retry and live with skip locked.
create or replace function overlap_instants(
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
