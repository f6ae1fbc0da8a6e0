-- Corrects the count of a reader that found no event in the range (p_from, p_to], although events are queued. p_to is the end of a
-- closed batch, or everything that was counted. In the latter case nothing is queued.
--
-- Takes effect only if the worker holds the errand under this lease, the reader stands at p_from, and no event was counted since.
-- Returns whether it did.
--
-- Locks: bus_state, reader, errand.
create or replace function recount_reader(
  p_worker uuid, p_subscriber uuid, p_strand smallint, p_lease integer, p_from bigint, p_to bigint, p_fanned bigint
) returns boolean language plpgsql as $$
begin
  perform from bus_state where one and fanned = p_fanned for share;
  if not found then
    return false;
  end if;
  perform from reader where subscriber_id = p_subscriber and strand = p_strand and pos = p_from for update;
  if not found
     or not exists (select held_deliveries(p_worker, array[p_subscriber], array[p_strand], array[p_lease])) then
    return false;
  end if;
  update reader
     set batch_end = null, queued = case when p_to = p_fanned then 0 else queued end,
         oldest_at = case when p_to = p_fanned then null else oldest_at end
   where subscriber_id = p_subscriber and strand = p_strand;
  return true;
end $$;
