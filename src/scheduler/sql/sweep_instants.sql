-- Walks along stash values and parameters of instants, p_limit rows at a time, and deletes those of old instants that never
-- ran. Returns the position for the next call.
--
-- Locks: as forget_instants.
create or replace function sweep_instants(
  p_job uuid, p_instant timestamptz, p_limit integer, p_age_ms bigint, p_at timestamptz,
  out seen integer, out gone integer, out job_id uuid, out instant timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  v_jobs uuid[]; v_instants timestamptz[];
begin
  with ahead as (
    select u.job_id, u.instant
      from (
        (select s.job_id, s.instant from job_stash s
          where (s.job_id, s.instant) > (p_job, p_instant) order by 1, 2 limit p_limit)
        union
        (select p.job_id, p.instant from instant_params p
          where (p.job_id, p.instant) > (p_job, p_instant) order by 1, 2 limit p_limit)
      ) as u
     order by 1, 2
     limit p_limit
  ),
  old as (
    select a.*
      from ahead a
      join job on job.id = a.job_id
     where a.instant < p_at - retention_age(job.retention, p_age_ms) * interval '1 millisecond'
  )
  select (select count(*) from ahead), l.job_id, l.instant,
         (select array_agg(o.job_id) from old o), (select array_agg(o.instant) from old o)
    into seen, job_id, instant, v_jobs, v_instants
    from (select 1) as always
    left join lateral (select a.job_id, a.instant from ahead a order by 1 desc, 2 desc limit 1) as l on true;
  gone := forget_instants(v_jobs, v_instants);
end $$;
