-- Appends events about runs in one call: first those of finished runs, then those of created runs. Also adds to the activity
-- of the minute.
--
-- p_activity says how the runs ended and what fired. If it is null, all finished runs were cancelled before they started.
--
-- Locks: the event log, then the minute's activity, a row that all transactions write.
create or replace function append_run_events(
  p_finished uuid[], p_finished_bodies text[], p_created uuid[], p_created_causes uuid[], p_created_bodies text[],
  p_actor text, p_at timestamptz, p_activity activity default null
) returns void language plpgsql as $$
begin
  if p_activity.at is null and p_finished is null and p_created is null then
    return;
  end if;
  perform open_event_log(coalesce(cardinality(p_finished), 0) + coalesce(cardinality(p_created), 0));
  with appended as (
    insert into event (seq, topic_id, type, subject, actor, cause, at, body)
    select nextval('event_seq'), 3, e.type, e.subject, p_actor, e.cause, p_at, e.body
      from (
        select 'run.finished' as type, f.subject, null::uuid as cause, f.body
          from unnest(p_finished, p_finished_bodies) as f (subject, body)
        union all
        select 'run.created', c.subject, c.cause, c.body
          from unnest(p_created, p_created_causes, p_created_bodies) as c (subject, cause, body)
      ) as e
  )
  insert into activity as a (at, success, failure, timeout, error, cancelled, started, wait, worst_wait,
                             fired, late, worst_late)
  select date_trunc('minute', coalesce(p_activity.at, p_at), 'UTC'), coalesce(p_activity.success, 0),
         coalesce(p_activity.failure, 0), coalesce(p_activity.timeout, 0), coalesce(p_activity.error, 0),
         case when p_activity.at is null then cardinality(p_finished) else coalesce(p_activity.cancelled, 0) end,
         coalesce(p_activity.started, 0), coalesce(p_activity.wait, '0'), coalesce(p_activity.worst_wait, '0'),
         coalesce(p_activity.fired, 0), coalesce(p_activity.late, '0'), coalesce(p_activity.worst_late, '0')
   where p_activity.at is not null or p_finished <> '{}'
  on conflict (at) do update set
    success = a.success + excluded.success, failure = a.failure + excluded.failure,
    timeout = a.timeout + excluded.timeout, error = a.error + excluded.error,
    cancelled = a.cancelled + excluded.cancelled, started = a.started + excluded.started,
    wait = a.wait + excluded.wait, worst_wait = greatest(a.worst_wait, excluded.worst_wait),
    fired = a.fired + excluded.fired, late = a.late + excluded.late,
    worst_late = greatest(a.worst_late, excluded.worst_late);
end $$;
