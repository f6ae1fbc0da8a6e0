-- Returns the body of an event about the end of a run. See run_body.
create or replace function end_body(
  p_job uuid, p_task uuid, p_instant timestamptz, p_attempt integer, p_priority priority,
  p_state run_state, p_reason text, p_retry boolean, p_execution uuid default null, p_node text default null
) returns text language sql stable as $$
  select run_body(
    p_job, p_task, p_instant, p_attempt, p_priority, p_execution, p_node,
    concat(',"state":"', p_state, '","reason":', coalesce(to_json(p_reason)::text, 'null'),
           ',"retry":', case when p_retry then 'true' else 'false' end))
$$;
