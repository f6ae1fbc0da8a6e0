-- Clears an instant of a job: counts go back to zero, held tokens and pending retries are deleted. Queued and running runs
-- stay.
--
-- Locks: token by task, held, retry, gate by id, the event log.
create or replace function clear_tokens(p_job uuid, p_instant timestamptz, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_tasks uuid[] := array(select id from task where job_id = p_job order by id);
  v_cleared integer;
  v_gates record;
begin
  perform 1 from token where task_id = any (v_tasks) and instant = p_instant order by task_id for update;
  update token set count = 0, fire = 0, cleared_at = p_at, cause = null
   where task_id = any (v_tasks) and instant = p_instant;
  get diagnostics v_cleared = row_count;
  delete from held where task_id = any (v_tasks) and instant = p_instant;
  delete from retry where task_id = any (v_tasks) and instant = p_instant;
  perform end_waits(array[p_job], array[p_instant], 'scheduler', p_at);
  return v_cleared;
end $$;
