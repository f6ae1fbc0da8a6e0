-- Takes back what silent workers hold in a queue. Returns how many errands came back or were poisoned (see lose_errands).
--
-- A worker is silent if its last beat, and the taking of the errand, was before p_silent_before. A worker of which nothing is
-- known is silent, too: however an errand became pending, it can run again. Whose beat is under way is waited for.
--
-- The workers in p_lost are silent, whenever their last beat was: their processes are gone.
--
-- Workers that have been silent for an hour are forgotten.
--
-- Locks: errand_worker by id, then errand and errand_hold with skip locked.
create or replace function scrub_errands(p_queue text, p_silent_before timestamptz, p_most_losses integer, p_lost uuid[]) returns integer
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_silent uuid[] := array(
    select h.worker
      from (select distinct o.worker from errand_hold o) as h
     where h.worker = any (p_lost)
        or not exists (select 1 from errand_worker w where w.id = h.worker and w.beat_at >= p_silent_before));
  v_worker uuid;
  v_spots tid[];
  v_lost integer := 0;
begin
  perform 1 from errand_worker w where w.id = any (v_silent) order by w.id for update;
  v_silent := array(
    select s.id
      from unnest(v_silent) as s (id)
     where s.id = any (p_lost)
        or not exists (select 1 from errand_worker w where w.id = s.id and w.beat_at >= p_silent_before));
  foreach v_worker in array v_silent loop
    v_spots := lock_errand_ids(array(
      select h.id
        from held_errands(array[v_worker]) h
       where h.queue = p_queue and (v_worker = any (p_lost) or h.taken_at < p_silent_before)));
    v_lost := v_lost
      + lose_errands(array(select e.ctid from errand e where e.ctid = any (v_spots) order by e.id), v_worker, p_most_losses);
  end loop;
  perform remove_ended_holds(v_silent);
  delete from errand_worker
   where id = any (array(
           select w.id from errand_worker w where w.beat_at < p_silent_before - interval '1 hour' for update skip locked));
  return v_lost;
end $$;
