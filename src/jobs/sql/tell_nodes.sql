-- Tells executions how runs of their nodes have ended, in the commit that ends the runs: stores an answer in the inbox of each
-- execution. Returns the owners of these executions, so that the caller wakes them after its commit; null among them: any conductor.
--
-- An execution that has ended, or does not exist, gets nothing. Neither does a node whose request was taken and that now waits for an
-- answer by its link (`answer_url`). A node's attempt has one answer: a further one is dropped.
--
-- Locks: inbox (inserts only). Reads `execution` without locking it: whoever holds rows of live must not wait for an execution.
create or replace function tell_nodes(
  p_runs uuid[], p_states run_state[], p_reasons text[], p_exit_codes integer[], p_results json[], p_at timestamptz
) returns uuid[] language plpgsql as $$
declare
  v_owners uuid[];
begin
  with told as (
    select e.id as execution_id, e.owner, n.nid, n.attempt,
           case r.state
             when 'success' then json_build_object('kind', 'done', 'result', r.result)
             when 'cancelled' then json_build_object('kind', 'cancelled')
             else json_build_object(
               'kind', 'failed', 'code', r.state, 'message', coalesce(r.reason, ''),
               'data', json_build_object('run', r.id, 'exit_code', r.exit_code))
           end as outcome
      from unnest(p_runs, p_states, p_reasons, p_exit_codes, p_results) as r (id, state, reason, exit_code, result)
      join node_run n on n.run_id = r.id
      join execution e on e.id = n.execution_id and e.status < 3
     where r.state <> 'success' or n.work -> 'runtime' ->> 'answer_url' is null
  ),
  stored as (
    insert into inbox (id, execution_id, at, body)
    select concat('answer/', nid, '/', attempt), execution_id, p_at,
           json_build_object(
             'point', 'answer', 'bornMs', floor(extract(epoch from p_at) * 1000)::bigint, 'actor', null,
             'body', json_build_object('point', 'answer', 'nid', nid, 'attempt', attempt, 'outcome', outcome))
      from told
     order by execution_id, nid
    on conflict do nothing
    returning execution_id
  )
  select array_agg(distinct t.owner) into v_owners from told t where t.execution_id in (select execution_id from stored);
  return v_owners;
end $$;
