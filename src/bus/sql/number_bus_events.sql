-- Decides which events of a call of append_bus are stored, numbers them, and keeps the new marks of publishers.
--
-- An event is left out if another publisher owns its topic, or if it is covered by a mark that was used in the last 24 hours. An
-- event with a known id of its own gets the number that it had. numbers has 0 for every other event that is left out.
--
-- Called under the lock of the bus log, so no other transaction uses the same marks meanwhile.
create or replace function number_bus_events(
  p_topic_ids integer[], p_claims integer[],
  p_mark_claims integer[], p_mark_keys text[], p_mark_firsts integer[], p_mark_lasts integer[], p_mark_digests bytea[],
  p_base bigint, p_at timestamptz,
  out numbers bigint[], out known jsonb
) language plpgsql as $$
declare
  v_since timestamptz := p_at - interval '24 hours';
begin
  with mark as (
    select m.n, m.first, m.last, k.seq, k.last_seq, k.digest is distinct from m.digest as is_other
      from unnest(p_mark_claims, p_mark_keys, p_mark_firsts, p_mark_lasts, p_mark_digests)
             with ordinality as m (claim, key, first, last, digest, n)
      join publish_key k on k.topic_id = p_topic_ids[m.claim] and k.key = m.key and k.at > v_since
  ), covered as (
    -- an event's own mark, which has its number, wins over the mark of its request
    select place, max(case when mark.first = mark.last and not mark.is_other then mark.seq else 0 end) as seq
      from mark, generate_series(mark.first, mark.last) as place
     group by place
  ), event as (
    select e.place, coalesce(c.seq, 0) as seq, p_topic_ids[e.claim] > 0 and c.place is null as is_new
      from unnest(p_claims) with ordinality as e (claim, place)
      left join covered c on c.place = e.place
  ), numbered as (
    select e.place, case when e.is_new then p_base + count(*) filter (where e.is_new) over (order by e.place) else e.seq end as seq
      from event e
  )
  select (select array_agg(n.seq order by n.place) from numbered n),
         (select jsonb_agg(jsonb_build_array(m.n - 1, m.seq, m.last_seq, m.is_other)) from mark m)
    into numbers, known;

  insert into publish_key as k (topic_id, key, seq, last_seq, digest, at)
  select p_topic_ids[m.claim], m.key, numbers[m.first], numbers[m.last], m.digest, p_at
    from unnest(p_mark_claims, p_mark_keys, p_mark_firsts, p_mark_lasts, p_mark_digests)
           as m (claim, key, first, last, digest)
   where p_topic_ids[m.claim] > 0 and numbers[m.first] > 0 and numbers[m.last] > 0
  on conflict (topic_id, key)
  do update set seq = excluded.seq, last_seq = excluded.last_seq, digest = excluded.digest, at = excluded.at
   where k.at <= v_since;
end $$;
