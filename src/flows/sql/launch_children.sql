-- Launches executions that nodes of others call. Each begins at revision 0, with its launch in its inbox. p_at_child is when that message
-- may be taken: a tenant's executions launch only so many others in a second.
--
-- The node that calls a flow that does not exist gets a failure as its answer. The node that launches a detached execution gets its id.
-- Returns the executions that have messages now.
--
-- Locks: execution (rows that are inserted), inbox (rows that are inserted).
create or replace function launch_children(
  p_ids uuid[], p_flows text[], p_parents uuid[], p_nids text[], p_attempts integer[], p_detached boolean[], p_depths smallint[],
  p_bodies json[], p_at_child timestamptz[], p_format smallint, p_at timestamptz
) returns uuid[] language plpgsql as $$
declare
  v_sent uuid[];
begin
  with asked as materialized (
    select u.*, f.id as flow_id, f.version
      from unnest(p_ids, p_flows, p_parents, p_nids, p_attempts, p_detached, p_depths, p_bodies, p_at_child)
           as u (id, flow, parent, nid, attempt, detached, depth, body, at)
      left join flow f on f.name = u.flow and f.deleted_at is null
  ),
  made as (
    insert into execution (id, rev, status, flow_id, version, parent, parent_nid, parent_attempt, depth, format,
                           created_at, updated_at)
    select id, 0, 0, flow_id, version, case when not detached then parent end, case when not detached then nid end,
           case when not detached then attempt end, depth, p_format, p_at, p_at
      from asked
     where flow_id is not null
    on conflict do nothing
  ),
  sent as (
    insert into inbox (execution_id, id, at, body)
    select id, id::text, at, body from asked where flow_id is not null
     union all
    select parent, concat('answer/', nid, '/', attempt), p_at,
           json_build_object('point', 'answer', 'bornMs', (extract(epoch from p_at) * 1000)::bigint, 'actor', null, 'body',
             json_build_object('point', 'answer', 'nid', nid, 'attempt', attempt, 'outcome',
               case
                 when flow_id is null then json_build_object(
                   'kind', 'failed', 'code', 'no_such_flow', 'message', concat('there is no flow ', flow), 'data', null)
                 else json_build_object('kind', 'done', 'result', id)
               end))
      from asked
     where flow_id is null or detached
    on conflict do nothing
    returning execution_id
  )
  select array_agg(execution_id) into v_sent from sent;
  return v_sent;
end $$;
