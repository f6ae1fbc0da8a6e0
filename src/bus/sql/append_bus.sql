-- Appends the events of many requests to the bus log, in one call.
--
-- p_topics, p_owners, p_owner_names: the claims, one for each pair of topic and publisher.
-- p_claims, p_hashes, p_bodies, p_targets: the events, with the number of their claim. p_bodies has one line for each event: the
--   element of a delivery without its last brace, because its id is known only here. p_targets is null if no event has one.
-- p_mark_*: what publishers may repeat, null if there is none: the number of its claim, its text, the places of the first and
--   the last event that it covers, and the digest of the request.
--
-- topic_ids: for each claim the topic, or 0 if another publisher owns it. Its events are not stored.
-- base: the last number before this call. Without numbers, the n-th event has the number base + n.
-- numbers: the number of each event; 0: it was not stored. Null: all were stored.
-- known: the marks that were used in the last 24 hours, as rows (index, first number, last number, other digest). Their events are
--   not stored again.
--
-- Locks: new and ownerless rows of bus_topic by name, then advisory lock (7345, 8).
create or replace function append_bus(
  p_topics text[], p_owners uuid[], p_owner_names text[],
  p_claims integer[], p_hashes integer[], p_bodies text, p_targets uuid[],
  p_mark_claims integer[], p_mark_keys text[], p_mark_firsts integer[], p_mark_lasts integer[], p_mark_digests bytea[],
  p_at timestamptz,
  out topic_ids integer[], out base bigint, out numbers bigint[], out known jsonb
) language plpgsql as $$
declare
  v_count integer := cardinality(p_claims);
begin
  if exists (
    select from unnest(p_topics) as c (name)
      left join bus_topic t on t.name = c.name and t.deleted_at is null
     where t.owner is null
  ) then
    perform claim_bus_topics(p_topics, p_owners, p_owner_names, p_at);
  end if;
  base := open_bus_log(v_count);
  select array_agg(case when t.owner = c.owner then t.id when t.id is null then -1 else 0 end order by c.n)
    into topic_ids
    from unnest(p_topics, p_owners) with ordinality as c (name, owner, n)
    left join bus_topic t on t.name = c.name and t.deleted_at is null;
  if -1 = any (topic_ids) then
    -- deleted since it was looked up: the caller repeats the call
    raise exception 'a topic was deleted meanwhile' using errcode = 'serialization_failure';
  end if;
  if p_mark_keys is not null or 0 = any (topic_ids) then
    select k.numbers, k.known into numbers, known
      from number_bus_events(
        topic_ids, p_claims, p_mark_claims, p_mark_keys, p_mark_firsts, p_mark_lasts, p_mark_digests, base, p_at) k;
    insert into bus_event (seq, topic_id, key_hash, target, at, body)
    select e.seq, topic_ids[e.claim], e.hash, e.target, p_at, e.body || ',"id":"' || e.seq || '"}'
      from unnest(numbers, p_claims, p_hashes, p_targets, string_to_array(p_bodies, e'\n'))
        as e (seq, claim, hash, target, body)
     where e.seq > base;
    get diagnostics v_count = row_count;
  else
    insert into bus_event (seq, topic_id, key_hash, target, at, body)
    select base + e.n, topic_ids[e.claim], e.hash, e.target, p_at, e.body || ',"id":"' || base + e.n || '"}'
      from unnest(p_claims, p_hashes, p_targets, string_to_array(p_bodies, e'\n'))
        with ordinality as e (claim, hash, target, body, n);
  end if;
  if v_count > 0 then
    perform setval('bus_seq', base + v_count);
    perform count_topic_events(base, p_at);
  end if;
end $$;
