-- Moves a reader to the number at which its subscriber's strands changed. All its events up to there are delivered. Events of one key
-- may change strands there, so no strand continues until all have come so far. Returns whether they have; null: the worker does not
-- hold the errand, or the reader has moved.
--
-- A strand without queued events has come as far as fan-out, which has passed the barrier.
--
-- Locks: reader, errand.
create or replace function reach_barrier(
  p_worker uuid, p_subscriber uuid, p_strand smallint, p_lease integer, p_from bigint, p_barrier bigint
) returns boolean language plpgsql as $$
declare
  v_pos bigint;
begin
  select pos into v_pos from reader where subscriber_id = p_subscriber and strand = p_strand for update;
  if v_pos is distinct from p_from
     or not exists (select held_deliveries(p_worker, array[p_subscriber], array[p_strand], array[p_lease])) then
    return null;
  end if;
  update reader set pos = p_barrier where subscriber_id = p_subscriber and strand = p_strand and pos < p_barrier;
  return not exists (
    select from reader where subscriber_id = p_subscriber and strand <> p_strand and pos < p_barrier and queued > 0);
end $$;
