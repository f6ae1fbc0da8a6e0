-- Notes that a worker lives and holds the named errands. Returns the positions of those that it does not hold.
--
-- An errand that the worker holds without naming it gets the time since when it is unnamed: the beat before this one, or the time
-- it was taken. It comes back once that is p_unnamed ago, which is a loss. If all is named, the beat writes only its time.
--
-- Locks: errand_worker, then errand and errand_hold with skip locked.
create or replace function beat_errands(
  p_worker uuid, p_queues text[], p_keys text[], p_leases integer[], p_at timestamptz, p_unnamed interval,
  p_most_losses integer
) returns integer[] language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_beat_before timestamptz := (select w.beat_at from errand_worker w where w.id = p_worker);
  v_named text[] := array(
    select n.queue || ' ' || n.lease || ' ' || n.key from unnest(p_queues, p_keys, p_leases) as n (queue, key, lease));
  v_held text[];
  v_unnamed bigint[];
  v_since timestamptz[];
  v_again bigint[];
  v_spots tid[];
begin
  insert into errand_worker as w (id, beat_at)
  values (p_worker, p_at)
  on conflict (id) do update set beat_at = greatest(w.beat_at, excluded.beat_at);

  -- "is not true" keeps the planner from a join, whose size it cannot know
  with held as (
    select h.*, h.queue || ' ' || h.lease || ' ' || h.key as name from held_errands(array[p_worker]) h
  ),
  judged as (
    select h.name, h.id, h.unnamed_at, coalesce(greatest(h.taken_at, v_beat_before), p_at) as since,
           (h.name in (select unnest(v_named))) is true as is_named
      from held h
  )
  select array_agg(j.name), array_agg(j.id) filter (where not j.is_named), array_agg(j.since) filter (where not j.is_named),
         array_agg(j.id) filter (where j.is_named and j.unnamed_at is not null)
    into v_held, v_unnamed, v_since, v_again
    from judged j;
  if v_unnamed is not null then
    v_spots := lock_errand_ids(v_unnamed);
    update errand e
       set unnamed_at = u.since
      from unnest(v_unnamed, v_since) as u (id, since)
     where e.ctid = any (v_spots) and e.id = u.id and e.unnamed_at is null;
    v_spots := lock_errand_ids(v_unnamed);
    perform lose_errands(
      array(
        select e.ctid from errand e where e.ctid = any (v_spots) and e.unnamed_at <= p_at - p_unnamed order by e.id),
      p_worker, p_most_losses);
  end if;
  if v_again is not null then
    v_spots := lock_errand_ids(v_again);
    update errand set unnamed_at = null where ctid = any (v_spots);
  end if;
  perform remove_ended_holds(array[p_worker]);
  return array(
    select n.n::integer
      from unnest(v_named) with ordinality as n (name, n)
     where (n.name in (select unnest(v_held))) is not true);
end $$;
