-- Returns how many errands of a queue are in each state.
create or replace function count_errands(
  p_queue text, out scheduled bigint, out ready bigint, out pending bigint, out poisoned bigint
) language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  select s.n, r.n - p.n, p.n, x.n
    into scheduled, ready, pending, poisoned
    from (select count(*) as n from errand e where e.queue = p_queue and e.state = 's') as s,
         (select count(*) as n from errand e where e.queue = p_queue and e.state = 'r') as r,
         (select count(*) as n
            from held_errands(array(select distinct h.worker from errand_hold h)) h
           where h.queue = p_queue) as p,
         (select count(*) as n from errand e where e.queue = p_queue and e.state = 'x') as x;
end $$;
