-- Admits instants through the gates of their jobs, in the order of the ranks of their first runs. All runs of an active
-- instant move on to the next gate, or become ready. The caller holds the gates.
--
-- Locks: live with skip locked.
create or replace function pass_instants(p_jobs uuid[], p_at timestamptz) returns void language plpgsql as $$
begin
  with admitted as (
    insert into active_instant (job_id, instant, since)
    select g.id, w.instant, p_at
      from gate g
     cross join lateral (
       select h.instant
         from (
           select v.instant, v.rank
             from live v
             join task k on k.id = v.task_id
            where v.gate = g.id and not k.paused
              and not exists (select 1 from active_instant a where a.job_id = g.id and a.instant = v.instant)
            order by v.rank, v.id
            limit 1000
         ) as h
        group by h.instant
        order by min(h.rank), h.instant
        limit greatest(coalesce(g.capacity, 2147483647) - g.used, 0)
     ) as w
     where g.id = any (p_jobs)
    returning job_id
  )
  update gate set used = used + d.n
    from (select job_id, count(*)::integer as n from admitted group by 1) as d
   where gate.id = d.job_id;
  update live set gate = w.next
    from (
      select v.id, k.gates[2] as next
        from active_instant a
        join task k on k.job_id = a.job_id
       cross join lateral (
         select live.id from live
          where live.task_id = k.id and live.instant = a.instant and live.gate = a.job_id
            for update skip locked
       ) as v
       where a.job_id = any (p_jobs)
    ) as w
   where live.id = w.id;
end $$;
