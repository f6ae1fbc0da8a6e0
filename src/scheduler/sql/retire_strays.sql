-- Retires removed tasks that still have queued runs or held tokens. Returns how many tasks had any.
--
-- A stage that is concurrent with the removal of a task may queue a run or hold a token for it afterwards. Claims only park
-- such a run, and no gate admits it.
--
-- Locks: task by id, then as retire_tasks.
create or replace function retire_strays(p_limit integer, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_tasks uuid[];
begin
  v_tasks := array(
    select s.task_id
      from (
        select task_id from live where worker_id is null and (parked or gate is not null)
        union
        select task_id from held
      ) as s
      join task k on k.id = s.task_id
     where k.removed_at is not null
     order by 1
     limit p_limit
       -- waits for an apply that is restoring the task, and then skips the task
       for update of k
  );
  if v_tasks <> '{}' then
    perform retire_tasks(v_tasks, false, 'task removed', 'scheduler', p_at);
  end if;
  return cardinality(v_tasks);
end $$;
