-- Reads the bus log after a number: at most p_most events, and at most p_bytes of bodies, but at least one event.
--
-- It returns one row for the page: a row for each event costs the client several times as much as its body.
--
-- The settings pin the plan. A plan that was made while the log was empty sorts the whole backlog: 107 ms a page instead of 4 to
-- 10. Numbers become visible in order, so a reader of "after n" misses no event.
create or replace function read_bus_page(
  p_after bigint, p_to bigint, p_most integer, p_bytes integer,
  out numbers json, out topics json, out hashes json, out targets json, out times json, out bodies text
) language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
begin
  select array_to_json(array_agg(p.seq)), array_to_json(array_agg(p.topic_id)), array_to_json(array_agg(p.key_hash)),
         case when count(p.target) > 0 then array_to_json(array_agg(p.target)) end,
         array_to_json(array_agg(round(date_part('epoch', p.at) * 1000)::bigint)), string_agg(p.body, e'\x01')
    into numbers, topics, hashes, targets, times, bodies
    from (
      select e.seq, e.topic_id, e.key_hash, e.target, e.at, e.body,
             sum(octet_length(e.body)) over (order by e.seq rows between unbounded preceding and 1 preceding) as before
        from (
          select l.seq, l.topic_id, l.key_hash, l.target, l.at, l.body
            from bus_event l
           where l.seq > p_after and l.seq <= p_to
           order by l.seq
           limit p_most) as e
       order by e.seq) as p
   where p.before is null or p.before + octet_length(p.body) <= p_bytes;
end $$;
