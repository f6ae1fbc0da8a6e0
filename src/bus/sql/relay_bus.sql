-- Appends copied events to the bus log. p_bodies: the elements of a delivery without their last brace, because the id is known only
-- here.
--
-- Unlike append_bus it asks for no owner: Millrace itself and the tenant's own database may publish to any topic.
--
-- Locks: advisory lock (7345, 8).
create or replace function relay_bus(p_topics integer[], p_hashes integer[], p_bodies text[], p_at timestamptz) returns void
language plpgsql as $$
declare
  v_count integer := cardinality(p_topics);
  v_base bigint := open_bus_log(v_count);
begin
  insert into bus_event (seq, topic_id, key_hash, at, body)
  select v_base + e.n, e.topic, e.hash, p_at, e.body || ',"id":"' || v_base + e.n || '"}'
    from unnest(p_topics, p_hashes, p_bodies) with ordinality as e (topic, hash, body, n);
  perform setval('bus_seq', v_base + v_count);
  perform count_topic_events(v_base, p_at);
end $$;
