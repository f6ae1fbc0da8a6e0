-- Takes errands from a lost worker: each is ready again at once, in the order of the list, or poisoned if it was lost
-- p_most_losses times in a row. Returns how many were taken.
--
-- The caller has locked them.
create or replace function lose_errands(p_spots tid[], p_worker uuid, p_most_losses integer) returns integer language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_lost integer;
begin
  update errand e
     set state = case when e.losses + 1 >= p_most_losses then 'x' else 'r' end::"char",
         losses = e.losses + 1,
         reason = case when e.losses + 1 >= p_most_losses
                       then format('lost with its worker %s times in a row; the last worker was %s', e.losses + 1, p_worker)
                       else e.reason end,
         id = s.id, unnamed_at = null, again = false
    from (select u.spot, nextval('errand_seq') as id from unnest(p_spots) as u (spot)) as s
   where e.ctid = s.spot;
  get diagnostics v_lost = row_count;
  return v_lost;
end $$;
