-- Returns what workers hold, with the number of each errand.
create or replace function held_errands(p_workers uuid[])
returns table (queue text, key text, id bigint, lease integer, worker uuid, taken_at timestamptz, unnamed_at timestamptz)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  return query
  select h.queue, e.key, e.id, h.lease, h.worker, h.taken_at, e.unnamed_at
    from errand_hold h
   cross join lateral unnest(h.ids) as r (ids)
   cross join lateral (
     select o.key, o.id, o.unnamed_at
       from errand o
      where o.queue = h.queue and o.state = 'r' and o.id >= lower(r.ids) and o.id < upper(r.ids)
   ) as e
   where h.worker = any (p_workers);
end $$;
