-- Stores one step of a replay: moves it on, closes its batch, lets it wait, or ends it.
--
-- Takes effect only if the worker holds the errand under this lease, the replay is running, and it stands at p_from. p_accepted: a dead
-- letter that the receiver has accepted, and which is deleted. p_refused: a dead letter of an event that it refuses. A replay that
-- has ended loses its errand. One that continues keeps it with the worker, or waits until p_run_at.
--
-- Readers and the subscriber's health are not touched. Returns `held`: the worker goes on. `moved`: the position of the replay has changed.
-- `over`: there is nothing left to do for this worker.
--
-- Locks: subscriber (only with p_refused), replay, errand, the event log.
create or replace function settle_replay(
  p_worker uuid, p_replay uuid, p_lease integer, p_from bigint, p_to bigint, p_sent integer, p_batch_end bigint, p_attempts integer,
  p_state text, p_run_at timestamptz, p_reason text, p_accepted uuid, p_refused dead_letter, p_at timestamptz
) returns text language plpgsql as $$
declare
  v_key text := '["replay",["' || p_replay::text || '"]]';
  v_replay replay;
begin
  if (p_refused).id is not null then
    perform from subscriber where id = (p_refused).subscriber_id for key share;
  end if;
  select * into v_replay from replay where id = p_replay for update;
  if (lock_errands('main', p_worker, array[v_key], array[p_lease])).lost is not null then
    return 'over';
  end if;
  if v_replay.state is distinct from 'running' then
    delete from errand where queue = 'main' and key = v_key;
    return 'over';
  end if;
  if v_replay.pos <> p_from then
    return 'moved';
  end if;
  update replay
     set pos = p_to, sent = sent + p_sent, batch_end = p_batch_end, attempts = p_attempts, state = p_state
   where id = p_replay;
  delete from dead_letter where id = p_accepted;
  if (p_refused).id is not null then
    insert into dead_letter select (p_refused).* on conflict (subscriber_id, batch) do nothing;
  end if;
  if p_state <> 'running' then
    delete from errand where queue = 'main' and key = v_key;
    perform append_events(
      5, array['replay.' || p_state], array[v_replay.subscriber_id], 'installation', array[null::uuid], p_at,
      array(
        select json_strip_nulls(json_build_object(
                 'name', s.name, 'replay', p_replay, 'sent', v_replay.sent + p_sent, 'reason', p_reason))::text
          from subscriber s
         where s.id = v_replay.subscriber_id));
    return 'over';
  end if;
  if p_run_at is null then
    update errand set losses = 0, attempts = 0, reason = null
     where queue = 'main' and key = v_key and (losses > 0 or attempts > 0 or reason is not null);
    return 'held';
  end if;
  -- pushed meanwhile: whatever it waits for may have happened
  update errand
     set state = case when again then 'r'::"char" else 's'::"char" end, run_at = case when again then null else p_run_at end,
         id = nextval('errand_seq'), unnamed_at = null, again = false, losses = 0, attempts = attempts + 1,
         reason = p_reason
   where queue = 'main' and key = v_key;
  return 'over';
end $$;
