-- Appends events about runs in one call: first those of finished runs, then those of created runs. Also adds to the activity
-- of the minute.
--
-- p_activity says how the runs ended and what fired. If it is null, all finished runs were cancelled before they started.
--
-- Locks: the event log, then the minute's activity.
create or replace function append_run_events(
  p_finished uuid[], p_finished_bodies text[], p_created uuid[], p_created_causes uuid[], p_created_bodies text[],
  p_actor text, p_at timestamptz, p_activity activity default null
) returns void language plpgsql as $$
declare
  v_activity activity := p_activity;
begin
  if v_activity.at is null and p_finished <> '{}' then
    v_activity.at := p_at;
    v_activity.cancelled := cardinality(p_finished);
  end if;
  if v_activity.at is null and p_finished is null and p_created is null then
    return;
  end if;
  perform open_event_log(coalesce(cardinality(p_finished), 0) + coalesce(cardinality(p_created), 0));
  insert into event (seq, topic_id, type, subject, actor, cause, at, body)
  select nextval('event_seq'), 3, e.type, e.subject, p_actor, e.cause, p_at, e.body
    from (
      select 'run.finished' as type, f.subject, null::uuid as cause, f.body
        from unnest(p_finished, p_finished_bodies) as f (subject, body)
      union all
      select 'run.created', c.subject, c.cause, c.body
        from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body)
    ) as e;
  if v_activity.at is not null then
    perform add_activity(v_activity);
  end if;
end $$;
