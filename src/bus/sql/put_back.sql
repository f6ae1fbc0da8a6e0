-- Gives a held errand back until p_run_at, because its open batch is not due yet (p_reason is null), or because other strands must
-- come first. If more events were counted for the reader than the caller knows, the worker keeps the errand and looks again.
--
-- Returns whether the worker still holds the errand; null: it had lost it.
--
-- Locks: reader, errand.
create or replace function put_back(
  p_worker uuid, p_subscriber uuid, p_strand smallint, p_lease integer, p_queued bigint, p_run_at timestamptz, p_reason text
) returns boolean language plpgsql as $$
declare
  v_queued bigint;
begin
  select queued into v_queued from reader where subscriber_id = p_subscriber and strand = p_strand for update;
  if not exists (select held_deliveries(p_worker, array[p_subscriber], array[p_strand], array[p_lease])) then
    return null;
  end if;
  if v_queued is distinct from p_queued and p_reason is null then
    return true;
  end if;
  update errand set state = 's', run_at = p_run_at, unnamed_at = null, again = false, losses = 0, reason = p_reason
   where queue = 'main' and key = deliver_key(p_subscriber, p_strand);
  return false;
end $$;
