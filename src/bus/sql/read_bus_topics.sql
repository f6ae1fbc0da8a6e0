-- Reads the events of some topics after a number, for a reader that is far behind: at most p_most events, and at most p_bytes of
-- bodies, but at least one event if there is any. Like read_bus_page it returns one row. looked_to tells how far it looked.
--
-- Up to 16 topics are probed one by one. With more topics it walks along the log, at most 50,000 numbers: a rare topic would make
-- the walk long. The walk begins at the next event, because a partition that was closed or dropped leaves up to four million numbers
-- without events.
create or replace function read_bus_topics(
  p_after bigint, p_to bigint, p_topics integer[], p_most integer, p_bytes integer,
  out numbers json, out topics json, out hashes json, out targets json, out times json, out bodies text, out looked_to bigint
) language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_to bigint := p_to;
  v_found integer;
  v_kept integer;
  v_last bigint;
begin
  if cardinality(p_topics) > 16 then
    v_to := least(p_to, 50000 + (select l.seq from bus_event l where l.seq > p_after and l.seq <= p_to order by l.seq limit 1));
  end if;
  select count(*), count(*) filter (where p.fits), max(p.seq) filter (where p.fits),
         array_to_json(array_agg(p.seq) filter (where p.fits)), array_to_json(array_agg(p.topic_id) filter (where p.fits)),
         array_to_json(array_agg(p.key_hash) filter (where p.fits)),
         case when count(p.target) > 0 then array_to_json(array_agg(p.target) filter (where p.fits)) end,
         array_to_json(array_agg(round(date_part('epoch', p.at) * 1000)::bigint) filter (where p.fits)),
         string_agg(p.body, e'\x01') filter (where p.fits)
    into v_found, v_kept, v_last, numbers, topics, hashes, targets, times, bodies
    from (
      select e.*, row_number() over in_order = 1 or sum(octet_length(e.body)) over in_order <= p_bytes as fits
        from (
          select e.seq, e.topic_id, e.key_hash, e.target, e.at, e.body
            from unnest(p_topics) as t (id)
           cross join lateral (
             select l.*
               from bus_event l
              where l.topic_id = t.id and l.seq > p_after and l.seq <= v_to
              order by l.seq
              limit p_most) as e
           where cardinality(p_topics) <= 16
           union all
          (select l.seq, l.topic_id, l.key_hash, l.target, l.at, l.body
             from bus_event l
            where cardinality(p_topics) > 16 and l.seq > p_after and l.seq <= v_to and l.topic_id = any (p_topics)
            order by l.seq
            limit p_most)
           order by seq
           limit p_most) as e
      window in_order as (order by e.seq rows between unbounded preceding and current row)
       order by e.seq) as p;
  -- all events up to here were looked at
  looked_to := case when v_found = p_most or v_kept < v_found then v_last else v_to end;
end $$;
