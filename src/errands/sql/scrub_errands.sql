-- Takes back what silent workers hold in a queue. Returns how many errands came back or were poisoned (see lose_errands).
--
-- A worker is silent if its last beat, and the taking of the errand, was before p_silent_before. A worker of which nothing is
-- known is silent, too: however an errand became pending, it can run again. Whose beat is under way is waited for.
--
-- The workers in p_lost are silent, whenever their last beat was: their processes are gone.
--
-- Workers that have been silent for an hour are forgotten.
--
-- Locks: errand_worker by id, then errand with skip locked.
create or replace function scrub_errands(p_queue text, p_silent_before timestamptz, p_most_losses integer, p_lost uuid[]) returns integer
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  -- steps from worker to worker along the index
  v_silent uuid[] := array(
    with recursive holder (id) as (
      (select e.worker from errand e where e.state = 'p' order by e.worker limit 1)
       union all
      select (select e.worker from errand e where e.state = 'p' and e.worker > h.id order by e.worker limit 1)
        from holder h
       where h.id is not null
    )
    select h.id
      from holder h
     where h.id is not null
       and (h.id = any (p_lost)
            or not exists (select 1 from errand_worker w where w.id = h.id and w.beat_at >= p_silent_before)));
  v_lost integer := 0;
begin
  perform 1 from errand_worker w where w.id = any (v_silent) order by w.id for update;
  v_silent := array(
    select s.id
      from unnest(v_silent) as s (id)
     where s.id = any (p_lost)
        or not exists (select 1 from errand_worker w where w.id = s.id and w.beat_at >= p_silent_before));
  if cardinality(v_silent) > 0 then
    v_lost := lose_errands(
      array(
        select e.ctid
          from errand e
         where e.worker = any (v_silent) and e.state = 'p' and e.queue = p_queue
           and (e.worker = any (p_lost) or (e.taken_at < p_silent_before) is not false)
         order by e.id
           for update skip locked),
      p_most_losses);
  end if;
  delete from errand_worker
   where id = any (array(
           select w.id from errand_worker w where w.beat_at < p_silent_before - interval '1 hour' for update skip locked));
  return v_lost;
end $$;
