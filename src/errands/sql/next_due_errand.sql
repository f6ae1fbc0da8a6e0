-- Returns the time of the next scheduled errand; null: there is none.
create or replace function next_due_errand(p_queue text) returns timestamptz language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return (select e.run_at from errand e where e.queue = p_queue and e.state = 's' order by e.run_at limit 1);
end $$;
