-- Adds errands that do not exist yet (I8). Without a time they are ready, else scheduled. Returns how many were added.
--
-- One that is ready or pending is marked instead: its worker may look for work, or have looked, before the caller's commit, so its
-- ack must not remove it. The conflict also waits for an ack that is under way. If it is taken after the caller's commit, the mark goes.
-- Errands in other states stay as they are.
--
-- Locks: errand by (queue, key).
create or replace function push_errands(p_queue text, p_keys text[], p_run_at timestamptz[]) returns integer
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_added integer;
begin
  with pushed as (
    insert into errand as e (queue, key, state, run_at)
    select p_queue, w.key, case when min(w.run_at) is null then 'r' else 's' end::"char", min(w.run_at)
      from unnest(p_keys, p_run_at) as w (key, run_at)
     group by w.key
     order by w.key
    on conflict (queue, key) do update set again = true
     where e.state = 'r' and not e.again
    returning e.again
  )
  select count(*) into v_added from pushed where not again;
  return v_added;
end $$;
