-- Counts the runs of a backfill by state. Each task at each instant counts once: by its unfinished run, its pending retry, or
-- its newest run.
--
-- Reads at most p_most finished runs (null: all). `whole` says whether these were all.
create or replace function tally_backfill(p_backfill uuid, p_most integer, out counts jsonb, out whole boolean)
language plpgsql stable as $$
declare
  v_since timestamptz := (select created_at from backfill where id = p_backfill);
  v_range record;
begin
  select * into v_range from backfill_range(p_backfill);
  with queued as (
    select case
             when v.worker_id is not null then 'running'
             when v.parked or v.gate is not null then 'waiting'
             else 'ready'
           end as state
      from live v
     where v.task_id = any (v_range.tasks) and v.instant between v_range.from_at and v_range.to_at
       and v.queued_at >= v_since
  ),
  ended as materialized (
    select r.task_id, r.instant, r.state, r.finished_at, r.id
      from run r
     where r.task_id = any (v_range.tasks) and r.instant between v_range.from_at and v_range.to_at
       and r.queued_at >= v_since
     limit p_most
  ),
  newest as (
    select distinct on (e.task_id, e.instant) e.task_id, e.instant, e.state
      from ended e
     order by e.task_id, e.instant, e.finished_at desc, e.id desc
  ),
  counted as (
    select q.state, count(*) as n from queued q group by 1
    union all
    select case when r.run_id is null then n.state::text else 'retry' end, count(*)
      from newest n
      left join retry r on r.task_id = n.task_id and r.instant = n.instant
     where not exists (select 1 from live v where v.task_id = n.task_id and v.instant = n.instant)
     group by 1
  )
  select coalesce((select jsonb_object_agg(c.state, c.n) from counted c), '{}'),
         coalesce((select count(*) from ended) < p_most, true)
    into counts, whole;
end $$;
