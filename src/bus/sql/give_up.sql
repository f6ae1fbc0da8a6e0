-- Sets a batch aside as a dead letter and moves its reader past it. p_to may be a later event that was accepted on its own: then
-- p_sent events after the dead ones count as delivered.
--
-- Takes effect only if the worker holds the errand under this lease, and the reader stands at p_from. If p_run_at is given, the
-- errand waits until then; otherwise the worker keeps it while anything is queued. Returns whether it took effect.
--
-- Locks: subscriber, reader, errand, the event log.
create or replace function give_up(
  p_worker uuid, p_subscriber uuid, p_strand smallint, p_lease integer, p_from bigint, p_to bigint, p_sent integer,
  p_letter dead_letter, p_run_at timestamptz
) returns boolean language plpgsql as $$
begin
  perform from subscriber where id = p_subscriber for no key update;
  perform from reader where subscriber_id = p_subscriber and strand = p_strand and pos = p_from for update;
  if not found
     or not exists (select held_deliveries(p_worker, array[p_subscriber], array[p_strand], array[p_lease])) then
    return false;
  end if;
  insert into dead_letter select (p_letter).* on conflict (subscriber_id, batch) do nothing;
  update reader
     set pos = p_to, queued = queued - (p_letter).events - p_sent, sent = sent + p_sent, batch_end = null, attempts = 0,
         failures = case when p_sent > 0 then 0 else failures end,
         first_failed_at = case when p_sent > 0 then null else first_failed_at end,
         oldest_at = case when queued > (p_letter).events + p_sent then oldest_at end
   where subscriber_id = p_subscriber and strand = p_strand;
  if p_run_at is not null then
    update errand set state = 's', run_at = p_run_at, unnamed_at = null, again = false, losses = 0, reason = (p_letter).code
     where queue = 'main' and key = deliver_key(p_subscriber, p_strand)
       and exists (select from reader where subscriber_id = p_subscriber and strand = p_strand and queued > 0);
  end if;
  perform end_deliveries(
    array(select e.key from errand e
           where e.queue = 'main' and e.key = deliver_key(p_subscriber, p_strand) and e.state = 'r'),
    array[p_subscriber], array[p_strand]);
  perform append_bus_events('dead_letter.created', array[p_subscriber], array[(p_letter).batch], (p_letter).at);
  return true;
end $$;
