-- Deletes idle tokens (no count, run, retry, and not held), the firings that counted them, and the stash values and
-- parameters of their instants.
--
-- A token that is being counted is not idle and stays. So do firings of the schedule above the low-water mark, and firings of
-- a backfill that is not over.
--
-- Locks: token with skip locked, then as forget_instants.
create or replace function forget_tokens(
  p_tasks uuid[], p_instants timestamptz[], out tokens integer, out firings integer, out instants integer
) language plpgsql as $$
declare
  v_tasks uuid[]; v_instants timestamptz[];
  v_open text[] := array(select id::text from backfill where ended_at is null);
begin
  select array_agg(l.task_id), array_agg(l.instant) into v_tasks, v_instants
    from (
      select t.task_id, t.instant
        from token t
       where (t.task_id, t.instant) in (
         select d.task_id, d.instant from unnest(p_tasks, p_instants) as d (task_id, instant))
         and t.count = 0
       order by 1, 2
         for update skip locked
    ) as l;
  -- a separate statement sees everything committed before we locked the tokens; since then no other transaction can change them
  with gone as (
    delete from token t
     using unnest(v_tasks, v_instants) as d (task_id, instant)
     where t.task_id = d.task_id and t.instant = d.instant and t.count = 0
       and not exists (select 1 from run r where r.task_id = d.task_id and r.instant = d.instant)
       and not exists (select 1 from live v where v.task_id = d.task_id and v.instant = d.instant)
       and not exists (select 1 from retry r where r.task_id = d.task_id and r.instant = d.instant)
       and not exists (select 1 from held h where h.task_id = d.task_id and h.instant = d.instant)
    returning t.task_id, t.instant
  )
  select array_agg(g.task_id), array_agg(g.instant) into v_tasks, v_instants from gone g;
  tokens := coalesce(cardinality(v_tasks), 0);
  delete from firing f
   using (
     select distinct e.trigger_id, d.instant - e.offset_ms * interval '1 millisecond' as instant
       from unnest(v_tasks, v_instants) as d (task_id, instant)
       join trigger_edge e on e.task_id = d.task_id
   ) as p
   where f.trigger_id = p.trigger_id and f.instant = p.instant
     and case when f.cause = 'schedule' then exists (
           select 1 from low_water w
            where w.trigger_id = p.trigger_id and p.instant >= w.from_at and p.instant < w.to_at)
         else f.cause <> all (v_open) end;
  get diagnostics firings = row_count;
  select forget_instants(array_agg(k.job_id), array_agg(d.instant)) into instants
    from unnest(v_tasks, v_instants) as d (task_id, instant)
    join task k on k.id = d.task_id;
end $$;
