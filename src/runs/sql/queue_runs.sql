-- Queues runs regardless of the counts of their tokens: for activation by hand and for retries that are due. The caller
-- adjusts the counts.
create or replace function queue_runs(
  p_tasks uuid[], p_instants timestamptz[], p_attempts integer[], p_priorities priority[], p_causes uuid[], p_at timestamptz,
  out created uuid[], out causes uuid[], out bodies text[], out gates uuid[]
) language plpgsql as $$
begin
  with readied as (
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, parked, gate, cause, queued_at)
    select new_id(), a.task_id, a.instant, k.version, a.attempt, a.priority, k.lane,
           p_at - head_start(a.priority), k.paused, k.gates[1], a.cause, p_at
      from unnest(p_tasks, p_instants, p_attempts, p_priorities, p_causes) as a (task_id, instant, attempt, priority, cause)
      join task k on k.id = a.task_id
    returning id, task_id, instant, attempt, priority, gate, cause
  )
  select array_agg(r.id), array_agg(r.cause),
         array_agg(run_body(k.job_id, r.task_id, r.instant, r.attempt, r.priority)),
         array_agg(r.gate) filter (where r.gate is not null)
    into created, causes, bodies, gates
    from readied r
    join task k on k.id = r.task_id;
end $$;
