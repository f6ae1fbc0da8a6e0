-- Appends events of one topic to the event log and returns the number of the last one.
--
-- Call it as the last step of a transaction (see open_event_log). Gaps in the numbers are normal.
--
-- Locks: the event log.
create or replace function append_events(
  p_topic integer, p_types text[], p_subjects uuid[], p_actor text, p_causes uuid[], p_at timestamptz, p_bodies text[]
) returns bigint language plpgsql as $$
declare
  v_last bigint;
begin
  perform open_event_log(cardinality(p_types));
  insert into event (seq, topic_id, type, subject, actor, cause, at, body)
  select nextval('event_seq'), p_topic, e.type, e.subject, p_actor, e.cause, p_at, e.body
    from unnest(p_types, p_subjects, p_causes, p_bodies) as e (type, subject, cause, body);
  select last_value into v_last from event_seq;
  return v_last;
end $$;
