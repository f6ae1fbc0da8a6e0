-- Puts messages into the inboxes of executions that have not ended. Messages for others are dropped, as are those that are in the inbox
-- already. Returns the executions that have messages now.
--
-- The executions are not locked. A message that comes while its execution ends is refused by the conductor that takes it.
--
-- Locks: inbox (rows that are inserted).
create or replace function send_to_executions(
  p_executions uuid[], p_ids text[], p_bodies json[], p_at timestamptz
) returns uuid[] language plpgsql as $$
declare
  v_sent uuid[];
begin
  with sent as (
    insert into inbox (execution_id, id, at, body)
    select u.execution_id, u.id, p_at, u.body
      from unnest(p_executions, p_ids, p_bodies) as u (execution_id, id, body)
      join execution e on e.id = u.execution_id and e.status < 3
     order by u.execution_id, u.id
    on conflict do nothing
    returning execution_id
  )
  select array_agg(execution_id) into v_sent from sent;
  return v_sent;
end $$;
