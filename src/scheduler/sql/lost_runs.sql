-- Returns which of the given runs (null: of all runs) are lost: their worker has no lease, an expired lease or a newer
-- incarnation, or sent a heartbeat more than p_slack after the claim that does not name the run.
create or replace function lost_runs(p_among uuid[], p_slack interval, p_at timestamptz) returns uuid[] language sql volatile as $$
  select coalesce(array_agg(v.id), '{}')
    from live v
    left join lease w on w.worker_id = v.worker_id
   where v.worker_id is not null and (p_among is null or v.id = any (p_among))
     and (w.worker_id is null or w.until <= p_at or w.incarnation > v.incarnation
          or (w.beat_at > v.claimed_at + p_slack and not v.id = any (w.holds)))
$$;
