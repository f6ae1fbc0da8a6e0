-- Renews the leases of workers and returns what each worker holds.
--
-- A newer incarnation of a worker takes over at once: runs of the older one return to the queue, counted as lost, and the
-- answer to the older one lists no held runs. A run that was claimed more than p_slack ago and that the heartbeat does not name
-- returns to the queue too. Runs that were lost too often or are being cancelled are left to the sweep (take_back_runs).
--
-- Locks: lease by worker, then live by id.
create or replace function renew_leases(
  p_workers uuid[], p_incarnations bigint[], p_holds jsonb, p_slack interval, p_until timestamptz, p_at timestamptz
) returns table (worker uuid, mine text[], cancelled uuid[], returned boolean) language plpgsql as $$
#variable_conflict use_column
declare
  v_returned uuid[];
begin
  insert into lease as w (worker_id, incarnation, until, beat_at, holds)
  select b.worker, b.incarnation, p_until, p_at, array(select jsonb_array_elements_text(p_holds -> (b.n::integer - 1))::uuid)
    from unnest(p_workers, p_incarnations) with ordinality as b (worker, incarnation, n)
   order by 1
  on conflict (worker_id) do update set
    incarnation = excluded.incarnation, until = excluded.until, beat_at = excluded.beat_at, holds = excluded.holds
   -- a heartbeat that another has overtaken says nothing new
   where w.incarnation < excluded.incarnation
      or (w.incarnation = excluded.incarnation and (w.beat_at is null or w.beat_at <= excluded.beat_at));
  with left_behind as (
    select v.id
      from live v
      join lease w on w.worker_id = v.worker_id
     where v.worker_id = any (p_workers) and v.losses < 2 and not v.cancel
       and (v.incarnation < w.incarnation
            or (w.beat_at = p_at and v.claimed_at < p_at - p_slack and not v.id = any (w.holds)))
     order by v.id
       for update of v
  ),
  freed as (
    update live set worker_id = null, incarnation = null, claimed_at = null, losses = losses + 1
     where id = any (array(select id from left_behind))
    returning id
  )
  select array_agg(id) into v_returned from freed;
  return query
  select b.worker, array_agg(v.id || ' ' || v.lease) filter (where v.id is not null),
         array_agg(v.id) filter (where v.cancel), v_returned is not null
    from unnest(p_workers, p_incarnations) as b (worker, incarnation)
    left join live v on v.worker_id = b.worker and v.incarnation = b.incarnation
   group by b.worker;
end $$;
