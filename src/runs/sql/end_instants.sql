-- Ends active instants of limited jobs that have no run, retry or held token left. The caller holds the gates.
create or replace function end_instants(p_jobs uuid[], p_instants timestamptz[]) returns void language plpgsql as $$
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
