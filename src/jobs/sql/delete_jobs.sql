-- Deletes those of the given jobs that are not deleted yet, and returns their runs that are to be killed. Deleted jobs stop;
-- their history stays readable.
--
-- Locks: job by id, trigger by id, then as retire_tasks. No stage waits for the row of a job or task while it holds one of
-- these.
create or replace function delete_jobs(p_jobs uuid[], p_actor text, p_at timestamptz)
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
