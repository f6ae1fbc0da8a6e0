-- Removes a held errand if there is nothing to deliver: the subscriber is gone, not active or not served by couriers, or nothing is
-- queued. Returns whether the worker still holds the errand.
--
-- Locks: reader, errand.
create or replace function end_idle(p_worker uuid, p_subscriber uuid, p_strand smallint, p_lease integer) returns boolean
language plpgsql as $$
begin
  perform from reader where subscriber_id = p_subscriber and strand = p_strand for update;
  if not exists (select held_deliveries(p_worker, array[p_subscriber], array[p_strand], array[p_lease])) then
    return false;
  end if;
  delete from errand
   where queue = 'main' and key = deliver_key(p_subscriber, p_strand)
     and not exists (
       select
         from reader r
         join subscriber s on s.id = r.subscriber_id
        where r.subscriber_id = p_subscriber and r.strand = p_strand
          and r.queued > 0 and s.state = 'active' and s.kind = 'http');
  return not found;
end $$;
