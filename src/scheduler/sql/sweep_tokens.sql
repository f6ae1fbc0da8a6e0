-- Walks along `token`, p_limit rows at a time, and deletes idle tokens that no deleted run leads to: those that were cleared
-- before they ever ran. Returns the position for the next call.
--
-- Locks: as forget_tokens.
create or replace function sweep_tokens(
  p_task uuid, p_instant timestamptz, p_limit integer, p_age_ms bigint, p_at timestamptz,
  out seen integer, out gone integer, out task_id uuid, out instant timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  v_tasks uuid[]; v_instants timestamptz[]; v_gone record;
begin
  with ahead as (
    select t.task_id, t.instant, t.count, t.cleared_at
      from token t
     where (t.task_id, t.instant) > (p_task, p_instant)
     order by 1, 2
     limit p_limit
  ),
  idle as (
    select a.task_id, a.instant
      from ahead a
      join task k on k.id = a.task_id
      join job on job.id = k.job_id
     where a.count = 0
       and greatest(a.instant, a.cleared_at) < p_at - retention_age(job.retention, p_age_ms) * interval '1 millisecond'
       and not exists (select 1 from run r where r.task_id = a.task_id and r.instant = a.instant)
  )
  select (select count(*) from ahead), l.task_id, l.instant,
         (select array_agg(i.task_id) from idle i), (select array_agg(i.instant) from idle i)
    into seen, task_id, instant, v_tasks, v_instants
    from (select 1) as always
    left join lateral (select a.task_id, a.instant from ahead a order by 1 desc, 2 desc limit 1) as l on true;
  select * into v_gone from forget_tokens(v_tasks, v_instants);
  gone := v_gone.tokens;
end $$;
