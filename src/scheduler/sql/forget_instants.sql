-- Deletes stash values and parameters of instants of jobs that have no token left.
--
-- A transaction that starts something in a job locks the row of the job while it reads parameters. So does this function.
--
-- Locks: job by id with skip locked. Retention waits for no lock, so it needs no place in the lock order.
create or replace function forget_instants(p_jobs uuid[], p_instants timestamptz[]) returns integer language plpgsql as $$
declare
  v_jobs uuid[] := array(
    select job.id from job
     where job.id in (
       select d.job_id from unnest(p_jobs, p_instants) as d (job_id, instant)
        where exists (select 1 from instant_params p where p.job_id = d.job_id and p.instant = d.instant)
           or exists (select 1 from job_stash s where s.job_id = d.job_id and s.instant = d.instant))
     order by 1
       for no key update skip locked);
  v_gone record;
begin
  if v_jobs = '{}' then
    return 0;
  end if;
  with empty as materialized (
    select d.job_id, d.instant
      from (select distinct u.job_id, u.instant from unnest(p_jobs, p_instants) as u (job_id, instant)) as d
     where d.job_id = any (v_jobs)
       and not exists (
         select 1 from task k join token t on t.task_id = k.id and t.instant = d.instant where k.job_id = d.job_id)
       and not exists (
         select 1 from task k join live v on v.task_id = k.id and v.instant = d.instant where k.job_id = d.job_id)
  ),
  stashed as (
    delete from job_stash s using empty e where s.job_id = e.job_id and s.instant = e.instant returning 1
  ),
  started as (
    delete from instant_params p using empty e where p.job_id = e.job_id and p.instant = e.instant returning 1
  )
  select (select count(*) from stashed) as stashed, (select count(*) from started) as started into v_gone;
  return v_gone.stashed + v_gone.started;
end $$;
