-- Deleting: what is deleted stops, its history stays readable.
--
-- Lock order: job by id, trigger by id, then as in the stages (live by id, held, retry, the event log); no token is
-- locked. Nothing in the stages waits for a job's or a task's row while it holds one of those.

-- Takes tasks out of the graph: no edge leads to or from them, what is queued is cancelled, what waits is dropped. What
-- runs may finish, or with p_kill is marked to be killed; answers the latter.
create function retire_tasks(p_tasks uuid[], p_kill boolean, p_reason text, p_actor text, p_at timestamptz)
returns table (id uuid, lease integer) language plpgsql as $$
#variable_conflict use_column
declare
  v_done record; v_gates record;
begin
  update task set paused = true, removed_at = coalesce(task.removed_at, p_at)
   where task.id = any (p_tasks);
  delete from trigger_edge where task_id = any (p_tasks);
  delete from task_edge where parent_id = any (p_tasks) or child_id = any (p_tasks);
  perform 1 from live where task_id = any (p_tasks) order by live.id for update;
  select * into v_done
    from cancel_queued(array(select live.id from live where task_id = any (p_tasks)), p_reason, p_at);
  update live set cancel = true, cancel_reason = coalesce(cancel_reason, p_reason)
   where p_kill and task_id = any (p_tasks) and worker_id is not null;
  perform 1 from held where task_id = any (p_tasks) order by task_id, instant for update;
  delete from held where task_id = any (p_tasks);
  delete from retry where task_id = any (p_tasks);
  select * into v_gates from work_gates(null, v_done.permits, v_done.jobs, v_done.instants, p_at);
  perform append_run_events(
    v_done.cancelled || v_gates.ended, v_done.bodies || v_gates.bodies, null, null, null, p_actor, p_at);
  return query
  select live.id, live.lease
    from live
   where live.task_id = any (p_tasks) and live.cancel;
end $$;

-- Deletes jobs that are not deleted yet; answers their runs that are to be killed.
create function delete_jobs(p_jobs uuid[], p_actor text, p_at timestamptz)
returns table (id uuid, lease integer) language plpgsql as $$
#variable_conflict use_column
declare
  v_jobs uuid[];
  v_triggers uuid[];
begin
  v_jobs := array(
    select job.id
      from job
     where job.id = any (p_jobs) and job.deleted_at is null
     order by job.id
       for update
  );
  v_triggers := array(
    select trigger.id
      from trigger
     where job_id = any (v_jobs)
     order by trigger.id
       for no key update
  );
  update job set deleted_at = p_at, updated_at = p_at
   where job.id = any (v_jobs);
  update trigger set removed_at = coalesce(trigger.removed_at, p_at)
   where trigger.id = any (v_triggers);
  delete from trigger_edge where trigger_id = any (v_triggers);
  delete from catchup where trigger_id = any (v_triggers);
  delete from job_stash where job_id = any (v_jobs);
  return query
  select r.id, r.lease
    from retire_tasks(array(select task.id from task where job_id = any (v_jobs) order by task.id),
                      true, 'job deleted', p_actor, p_at) as r;
end $$;

-- A stage that was under way while a task was removed may still have queued a run or held a token for it afterwards:
-- claims only park such a run, and no gate lets it through. A slow sweep takes them out; answers how many tasks had any.
create function retire_strays(p_limit integer, p_at timestamptz) returns integer language plpgsql as $$
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
       -- an apply that is just restoring the task is waited for, and then it is not removed any more
       for update of k
  );
  if v_tasks <> '{}' then
    perform retire_tasks(v_tasks, false, 'task removed', 'scheduler', p_at);
  end if;
  return cardinality(v_tasks);
end $$;
