-- Appends lifecycle events about subscribers to the event log (topic 5, millrace_bus), as the last step of a transaction.
--
-- Locks: the event log.
create or replace function append_bus_events(p_type text, p_subscribers uuid[], p_reasons text[], p_at timestamptz) returns void
language plpgsql as $$
begin
  if p_subscribers is null then
    return;
  end if;
  perform append_events(
    5, array_fill(p_type, array[cardinality(p_subscribers)]), p_subscribers, 'installation',
    array_fill(null::uuid, array[cardinality(p_subscribers)]), p_at,
    array(
      select json_strip_nulls(json_build_object('subscriber', s.name, 'reason', a.reason))::text
        from unnest(p_subscribers, p_reasons) with ordinality as a (id, reason, position)
        left join subscriber s on s.id = a.id
       order by a.position));
end $$;
