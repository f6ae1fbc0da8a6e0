-- Appends events about executions (topic 7, millrace_executions), each with an actor of its own; null: a machine.
--
-- Locks: the event log.
create or replace function append_execution_events(
  p_types text[], p_subjects uuid[], p_actors text[], p_bodies text[], p_at timestamptz
) returns void language plpgsql as $$
begin
  perform open_event_log(cardinality(p_types));
  insert into event (seq, topic_id, type, subject, actor, at, body)
  select nextval('event_seq'), 7, e.type, e.subject, e.actor, p_at, e.body
    from unnest(p_types, p_subjects, p_actors, p_bodies) as e (type, subject, actor, body);
end $$;
