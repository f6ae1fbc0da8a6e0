-- Returns how many errands of a queue are in each state.
create or replace function count_errands(
  p_queue text, out scheduled bigint, out ready bigint, out pending bigint, out poisoned bigint
) language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  select (select count(*) from errand e where e.queue = p_queue and e.state = 's'),
         (select count(*) from errand e where e.queue = p_queue and e.state = 'r'),
         (select count(*) from errand e where e.queue = p_queue and e.state = 'p'),
         (select count(*) from errand e where e.queue = p_queue and e.state = 'x')
    into scheduled, ready, pending, poisoned;
end $$;
