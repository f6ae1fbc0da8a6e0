-- Locks the errands among these deliveries that the worker holds under these leases, and returns their keys. All others passed
-- on to another worker: the caller must have no effect on their readers.
--
-- Locks: errand by key.
create or replace function held_deliveries(p_worker uuid, p_subscribers uuid[], p_strands smallint[], p_leases integer[])
returns setof text language plpgsql as $$
begin
  return query
  select e.key
    from errand e
    join (select deliver_key(a.subscriber_id, a.strand) as key, a.lease
            from unnest(p_subscribers, p_strands, p_leases) as a (subscriber_id, strand, lease)) as a using (key)
    join errand_hold h on h.lease = a.lease and h.worker = p_worker and h.queue = 'main'
   where e.queue = 'main' and e.state = 'r' and e.id <@ h.ids
   order by e.key
     for update of e;
end $$;
