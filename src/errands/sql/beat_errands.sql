-- Notes that a worker lives and holds the named errands. Returns the positions of those that it does not hold.
--
-- An errand that the worker holds without naming it gets the time since when it is unnamed: the beat before this one, or the time
-- it was taken. It comes back once that is p_unnamed ago, which is a loss. If all is named, the beat writes only its time.
--
-- Locks: errand_worker, then errand with skip locked.
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
  v_unnamed tid[];
begin
  insert into errand_worker as w (id, beat_at)
  values (p_worker, p_at)
  on conflict (id) do update set beat_at = greatest(w.beat_at, excluded.beat_at);
  v_held := array(
    select e.queue || ' ' || e.lease || ' ' || e.key from errand e where e.worker = p_worker and e.state = 'p');

  -- "is not true" keeps the planner from a join, whose size it cannot know
  if exists (select 1 from unnest(v_held) as h (name) where (h.name in (select unnest(v_named))) is not true) then
    v_unnamed := array(
      select e.ctid
        from errand e
       where e.worker = p_worker and e.state = 'p'
         and (e.queue || ' ' || e.lease || ' ' || e.key in (select unnest(v_named))) is not true
         for update skip locked);
    update errand
       set unnamed_at = coalesce(greatest(taken_at, v_beat_before), p_at)
     where ctid = any (v_unnamed) and unnamed_at is null;
    perform lose_errands(
      array(
        select e.ctid
          from errand e
         where e.worker = p_worker and e.state = 'p' and e.unnamed_at <= p_at - p_unnamed
           and (e.queue || ' ' || e.lease || ' ' || e.key in (select unnest(v_named))) is not true
         order by e.id
           for update skip locked),
      p_most_losses);
  end if;
  update errand
     set unnamed_at = null
   where ctid = any (array(
           select e.ctid
             from errand e
            where e.worker = p_worker and e.state = 'p' and e.unnamed_at is not null
              and (e.queue || ' ' || e.lease || ' ' || e.key in (select unnest(v_named))) is true
              for update skip locked));
  return array(
    select n.n::integer
      from unnest(v_named) with ordinality as n (name, n)
     where (n.name in (select unnest(v_held))) is not true);
end $$;
