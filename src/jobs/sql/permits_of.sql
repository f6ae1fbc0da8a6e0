-- Returns the gates of tasks and pools in a task's list of gates, that is, all but its job's gate. Runs hold permits of these.
create or replace function permits_of(p_gates uuid[], p_job uuid) returns uuid[] language sql immutable as $$
  select case when p_gates[1] = p_job then p_gates[2:] else p_gates end
$$;
