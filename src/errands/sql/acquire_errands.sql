-- Gives the errands that have been ready for longest to a worker, and writes one hold that names them. The errands' own rows are not
-- touched.
--
-- It begins after p_floor (see ready-floor.ts). No ready errand up to `passed` is left without a holder; null: none at all that this
-- statement saw. No errand up to a number that was passed when p_horizon was drawn can appear any more if `is_settled`; `horizon` is
-- the next one.
--
-- An errand that was pushed since it became ready is locked, to forget the push: its work sees what was committed before. If the push
-- is under way, the errand is left to a later acquire.
--
-- The answer is one row of lists, oldest first, or nulls: a row for each errand costs the client more than the errand itself. The
-- worker's beat is noted, because a worker that holds nothing does not beat. An acquire that finds nothing writes nothing.
--
-- Locks: the queue (it never waits for an errand), then errand with skip locked, then errand_worker.
create or replace function acquire_errands(
  p_queue text, p_worker uuid, p_most integer, p_at timestamptz, p_floor bigint, p_horizon xid8,
  out lease integer, out keys json, out attempts json, out last_id bigint, out passed bigint, out is_settled boolean, out horizon xid8
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_ids int8multirange;
  v_pushed bigint[];
  v_left bigint[];
begin
  perform lock_errand_queue(p_queue);
  is_settled := pg_snapshot_xmin(pg_current_snapshot()) >= p_horizon;
  with free as (
    select e.id, e.key, e.attempts, e.again
      from errand e
     where e.queue = p_queue and e.state = 'r' and e.id > p_floor
       and (e.id <@ (select range_agg(r.ids)
                       from errand_hold h
                      cross join lateral unnest(h.ids) as r (ids)
                      where h.queue = p_queue and h.last_id > p_floor)) is not true
     order by e.id
     limit p_most
  )
  select array_to_json(array_agg(f.key)), array_to_json(array_agg(f.attempts)), range_agg(int8range(f.id, f.id, '[]')), max(f.id),
         case when count(*) = p_most then max(f.id) end, array_agg(f.id) filter (where f.again)
    into keys, attempts, v_ids, last_id, passed, v_pushed
    from free f;
  horizon := pg_snapshot_xmax(pg_current_snapshot());
  if v_ids is null then
    return;
  end if;
  if v_pushed is not null then
    with unlocked as (
      select e.id
        from errand e
       where e.queue = p_queue and e.state = 'r' and e.id = any (v_pushed)
         for update skip locked
    ),
    forgotten as (
      update errand e set again = false
        from unlocked u
       where e.queue = p_queue and e.state = 'r' and e.id = u.id
      returning e.id
    )
    select array_agg(p.id) into v_left from unnest(v_pushed) as p (id) where p.id not in (select f.id from forgotten f);
  end if;
  if v_left is not null then
    select range_agg(int8range(e.id, e.id, '[]')), array_to_json(array_agg(e.key order by e.id)),
           array_to_json(array_agg(e.attempts order by e.id)), max(e.id)
      into v_ids, keys, attempts, last_id
      from unnest(v_ids) as r (ids)
     cross join lateral (
       select * from errand where queue = p_queue and state = 'r' and id >= lower(r.ids) and id < upper(r.ids)) as e
     where e.id <> all (v_left);
    passed := (select min(l.id) from unnest(v_left) as l (id)) - 1;
    if v_ids is null then
      return;
    end if;
  end if;
  if not exists (select 1 from errand_worker w where w.id = p_worker and w.beat_at > p_at - interval '1 second') then
    insert into errand_worker as w (id, beat_at)
    values (p_worker, p_at)
    on conflict (id) do update set beat_at = greatest(w.beat_at, excluded.beat_at);
  end if;
  insert into errand_hold as h (queue, worker, taken_at, ids, last_id)
  values (p_queue, p_worker, p_at, v_ids, last_id)
  returning h.lease into lease;
end $$;
