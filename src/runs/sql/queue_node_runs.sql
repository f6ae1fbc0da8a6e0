-- Queues runs of nodes of executions. Each is in the lane that the caller names (`node/RUNTIME:QUEUE`). A run with a pool
-- waits at the pool's gate; missing pools are created with one place.
--
-- An attempt of a node is queued once: one that exists already is left out. The caller passes the gates to work_gates, then
-- appends the events, with an actor of null.
--
-- Locks: gate (creation of pools), before live and all that comes after it.
create or replace function queue_node_runs(
  p_executions uuid[], p_nids text[], p_attempts integer[], p_works json[], p_projects uuid[],
  p_lanes text[], p_priorities priority[], p_pools text[], p_at timestamptz,
  out created uuid[], out bodies text[], out gates uuid[], out lanes text[], out pools text[]
) language plpgsql as $$
declare
  v_ids uuid[] := array(select new_id() from generate_subscripts(p_nids, 1));
  v_noted uuid[];
begin
  if array_remove(p_pools, null) <> '{}' then
    pools := make_pools(p_pools);
  end if;
  with noted as (
    insert into node_run (run_id, execution_id, nid, attempt, work, project_id)
    select *
      from unnest(v_ids, p_executions, p_nids, p_attempts, p_works, p_projects)
    on conflict (execution_id, nid, attempt) do nothing
    returning run_id
  )
  select array_agg(run_id) into v_noted from noted;
  with made as materialized (
    select a.id, a.execution_id, a.nid, a.attempt, a.priority, a.lane,
           (select gate.id from gate where gate.name = a.pool) as gate
      from unnest(v_ids, p_executions, p_nids, p_attempts, p_lanes, p_priorities, p_pools)
           as a (id, execution_id, nid, attempt, lane, priority, pool)
     where a.id = any (v_noted)
  ),
  readied as (
    insert into live (id, origin, version, attempt, priority, lane, rank, gate, queued_at)
    select id, 'node', 0, attempt, priority, lane, p_at - head_start(priority), gate, p_at from made
  )
  select array_agg(id), array_agg(run_body(null, null, null, attempt, priority, execution_id, nid)),
         array_agg(gate) filter (where gate is not null), array_agg(distinct lane) filter (where gate is null)
    into created, bodies, gates, lanes
    from made;
end $$;
