-- Adds counts to the row of their minute in `activity`.
--
-- Call it only while holding the lock of the event log: all transactions write the same row.
--
-- Locks: the row of the minute, after the event log.
create or replace function add_activity(p_activity activity) returns void language plpgsql as $$
begin
  insert into activity as a (at, success, failure, timeout, error, cancelled, started, wait, worst_wait,
                             fired, late, worst_late)
  values (date_trunc('minute', p_activity.at, 'UTC'), coalesce(p_activity.success, 0), coalesce(p_activity.failure, 0),
          coalesce(p_activity.timeout, 0), coalesce(p_activity.error, 0), coalesce(p_activity.cancelled, 0),
          coalesce(p_activity.started, 0), coalesce(p_activity.wait, '0'), coalesce(p_activity.worst_wait, '0'),
          coalesce(p_activity.fired, 0), coalesce(p_activity.late, '0'), coalesce(p_activity.worst_late, '0'))
  on conflict (at) do update set
    success = a.success + excluded.success, failure = a.failure + excluded.failure,
    timeout = a.timeout + excluded.timeout, error = a.error + excluded.error,
    cancelled = a.cancelled + excluded.cancelled, started = a.started + excluded.started,
    wait = a.wait + excluded.wait, worst_wait = greatest(a.worst_wait, excluded.worst_wait),
    fired = a.fired + excluded.fired, late = a.late + excluded.late,
    worst_late = greatest(a.worst_late, excluded.worst_late);
end $$;
