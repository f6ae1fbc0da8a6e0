-- Stores launches that no conductor takes now: an execution at revision 0 with its launch in the inbox. Returns for each the execution
-- that has its key, if that is another one. A launch that was accepted before is accepted again, and changes nothing.
--
-- Locks: execution (rows that are inserted, by key), inbox (rows that are inserted).
create or replace function accept_launches(
  p_ids uuid[], p_keys text[], p_flows uuid[], p_versions integer[], p_depths smallint[], p_bodies json[], p_owner uuid,
  p_format smallint, p_at timestamptz
) returns table (id uuid, holder uuid) language plpgsql as $$
#variable_conflict use_column
begin
  insert into execution (id, rev, owner, status, flow_id, version, key, depth, format, created_at, updated_at)
  select u.id, 0, p_owner, 0, u.flow_id, u.version, u.key, u.depth, p_format, p_at, p_at
    from unnest(p_ids, p_keys, p_flows, p_versions, p_depths) as u (id, key, flow_id, version, depth)
   order by u.key, u.id
  on conflict do nothing;
  -- a launch that has taken effect meanwhile needs no message
  insert into inbox (execution_id, id, at, body)
  select u.id, u.id::text, p_at, u.body
    from unnest(p_ids, p_bodies) as u (id, body)
    join execution e on e.id = u.id and e.rev = 0
   order by u.id
  on conflict do nothing;
  return query
  select u.id, (select e.id from execution e where e.key = u.key and e.id <> u.id)
    from unnest(p_ids, p_keys) as u (id, key);
end $$;
