-- Disables a subscriber whose receiver answered that it is gone. Its events are kept, and counted further. The errands of its other
-- strands end when their workers look at the subscriber.
--
-- Takes effect only if the worker holds the errand of this strand under this lease. Returns whether it did.
--
-- Locks: subscriber, reader, errand, the event log.
create or replace function disable_subscriber(
  p_worker uuid, p_subscriber uuid, p_strand smallint, p_lease integer, p_reason text, p_at timestamptz
) returns boolean language plpgsql as $$
begin
  perform from subscriber where id = p_subscriber for no key update;
  perform from reader where subscriber_id = p_subscriber and strand = p_strand for update;
  if not exists (select held_deliveries(p_worker, array[p_subscriber], array[p_strand], array[p_lease])) then
    return false;
  end if;
  update subscriber
     set state = 'disabled', reason = p_reason, health = greatest(0, health - 2), last_attempted_at = p_at,
         first_failed_at = coalesce(first_failed_at, p_at)
   where id = p_subscriber;
  delete from errand where queue = 'main' and key = deliver_key(p_subscriber, p_strand);
  perform append_bus_events('subscriber.disabled', array[p_subscriber], array[p_reason], p_at);
  return true;
end $$;
