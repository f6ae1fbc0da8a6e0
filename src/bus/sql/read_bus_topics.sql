-- Reads the events of some topics after a number, for a reader that is far behind: at most p_most events, and at most p_bytes of
-- bodies, but at least one event if there is any. Its last row tells how far it looked: that row has no topic.
--
-- Up to 16 topics are probed one by one. With more topics it walks along the log, at most 50,000 numbers: a rare topic would make
-- the walk long.
create or replace function read_bus_topics(p_after bigint, p_to bigint, p_topics integer[], p_most integer, p_bytes integer)
returns table (seq bigint, topic_id integer, key_hash integer, target uuid, at timestamptz, body text)
language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_to bigint := case when cardinality(p_topics) > 16 then least(p_to, p_after + 50000) else p_to end;
  v_last bigint;
  v_found integer := 0;
  v_bytes bigint := 0;
  v_event record;
begin
  for v_event in
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
     limit p_most
  loop
    v_bytes := v_bytes + octet_length(v_event.body);
    exit when v_found > 0 and v_bytes > p_bytes;
    seq := v_event.seq; topic_id := v_event.topic_id; key_hash := v_event.key_hash;
    target := v_event.target; at := v_event.at; body := v_event.body;
    v_found := v_found + 1;
    v_last := v_event.seq;
    return next;
  end loop;
  -- all events up to here were looked at
  seq := case when v_found = p_most or v_bytes > p_bytes then coalesce(v_last, p_after) else v_to end;
  topic_id := null; key_hash := null; target := null; at := null; body := null;
  return next;
end $$;
