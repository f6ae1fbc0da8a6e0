-- Returns the body of an event about a run: of a job, task and instant, or of an execution and node. p_more: further members.
--
-- It concatenates text: json_build_object takes three times as long, and every run pays for it. p_execution, p_node and
-- p_more are each used once, so that the planner can inline the function where these are looked up.
create or replace function run_body(
  p_job uuid, p_task uuid, p_instant timestamptz, p_attempt integer, p_priority priority,
  p_execution uuid default null, p_node text default null, p_more text default null
) returns text language sql stable as $$
  select concat(
    case
      when p_task is not null then concat('{"job":"', p_job, '","task":"', p_task, '","instant":', to_json(p_instant))
      else concat('{"job":null,"task":null,"instant":null,"execution":', coalesce(to_json(p_execution)::text, 'null'),
                  ',"node":', coalesce(to_json(p_node)::text, 'null'))
    end,
    ',"attempt":', p_attempt, ',"priority":"', p_priority, '"', p_more, '}')
$$;
