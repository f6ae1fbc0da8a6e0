-- Gives the errands that have been ready for longest to a worker. Each time, the lease grows by one. Errands that another
-- transaction has locked are skipped, and so are those below p_floor (see claim-floor.ts).
--
-- The answer is one row of lists, oldest first, or null: a row for each errand costs the client more than the errand itself.
--
-- The worker's beat is noted, because a worker that holds nothing does not beat. An acquire that finds nothing writes nothing.
--
-- Locks: errand with skip locked, then errand_worker. No transaction waits for an errand while it has locked a worker.
create or replace function acquire_errands(
  p_queue text, p_worker uuid, p_most integer, p_at timestamptz, p_floor bigint,
  out first_id bigint, out keys json, out leases json, out attempts json
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_spots tid[] := array(
    select e.ctid
      from errand e
     where e.queue = p_queue and e.state = 'r' and e.id >= p_floor
     order by e.id
     limit p_most
       for update skip locked);
begin
  if cardinality(v_spots) = 0 then
    return;
  end if;
  if not exists (select 1 from errand_worker w where w.id = p_worker and w.beat_at > p_at - interval '1 second') then
    insert into errand_worker as w (id, beat_at)
    values (p_worker, p_at)
    on conflict (id) do update set beat_at = greatest(w.beat_at, excluded.beat_at);
  end if;
  with taken as (
    update errand e
       set state = 'p', worker = p_worker, lease = e.lease + 1, taken_at = p_at
     where e.ctid = any (v_spots)
    returning e.id, e.key, e.lease, e.attempts
  )
  select min(t.id), array_to_json(array_agg(t.key order by t.id)), array_to_json(array_agg(t.lease order by t.id)),
         array_to_json(array_agg(t.attempts order by t.id))
    into first_id, keys, leases, attempts
    from taken t;
end $$;
