-- Walks along `firing`, p_limit rows at a time, and deletes old firings that no deleted run leads to, because their edge was
-- removed. Returns the position for the next call, and the triggers it passed: their low-water marks must be raised before
-- their firings can be deleted.
--
-- Locks: advisory lock (7345, 6), tried only.
create or replace function sweep_firings(
  p_trigger uuid, p_instant timestamptz, p_limit integer, p_age_ms bigint, p_at timestamptz,
  out seen integer, out gone integer, out trigger_id uuid, out instant timestamptz, out triggers uuid[]
) language plpgsql as $$
#variable_conflict use_column
declare
  v_open text[] := array(select id::text from backfill where ended_at is null);
begin
  if not pg_try_advisory_xact_lock(7345, 6) then
    return;
  end if;
  with ahead as (
    select f.trigger_id, f.instant, f.cause
      from firing f
     where (f.trigger_id, f.instant) > (p_trigger, p_instant)
     order by 1, 2, 3
     limit p_limit
  ),
  old as (
    select a.*
      from ahead a
      join trigger t on t.id = a.trigger_id
      join job on job.id = t.job_id
     where a.instant < p_at - retention_age(job.retention, p_age_ms) * interval '1 millisecond'
       and not exists (
         select 1
           from trigger_edge e
           join token k on k.task_id = e.task_id and k.instant = a.instant + e.offset_ms * interval '1 millisecond'
          where e.trigger_id = a.trigger_id)
  ),
  spent as (
    delete from firing f
     using old o
     where f.trigger_id = o.trigger_id and f.instant = o.instant and f.cause = o.cause
       and case when o.cause = 'schedule' then exists (
             select 1 from low_water w
              where w.trigger_id = o.trigger_id and o.instant >= w.from_at and o.instant < w.to_at)
           else o.cause <> all (v_open) end
    returning 1
  )
  select (select count(*) from ahead), (select count(*) from spent), l.trigger_id, l.instant,
         array(select distinct o.trigger_id from old o)
    into seen, gone, trigger_id, instant, triggers
    from (select 1) as always
    left join lateral (select a.trigger_id, a.instant from ahead a order by 1 desc, 2 desc limit 1) as l on true;
end $$;
