-- Admits runs through the gates of tasks and pools, in order of rank. Returns how many became ready. The caller holds the
-- gates.
--
-- A run that finds another of its gates full moves to that gate. So each run waits at a gate that was full when it came, and
-- is looked at again when that gate has room.
--
-- Locks: live with skip locked.
create or replace function pass_runs(p_gates uuid[]) returns integer language plpgsql as $$
declare
  v_passed integer := 0;
  v_turn record;
begin
  loop
    with room as (
      select id, coalesce(capacity, 2147483647) - used as free
        from gate
       where id = any (p_gates) and kind <> 'job' and used < coalesce(capacity, 2147483647)
    ),
    heads as materialized (
      select h.*
        from room
       cross join lateral (
         select v.id, v.rank,
                -- a node's run has no limit but its pool
                case when v.task_id is null then array[v.gate] else permits_of(k.gates, k.job_id) end as needs
           from live v
           left join task k on k.id = v.task_id
          where v.gate = room.id and not coalesce(k.paused, false)
            -- one that came after the gates were locked may need another
            and coalesce(permits_of(k.gates, k.job_id) <@ p_gates, true)
          order by v.rank, v.id
          limit least(room.free, 1000)
            for update of v skip locked
       ) as h
    ),
    wanting as (
      select h.id, n.gate_id, row_number() over (partition by n.gate_id order by h.rank, h.id) as place
        from heads h
       cross join unnest(h.needs) as n (gate_id)
    ),
    judged as materialized (
      select h.id, h.needs, s.shut
        from heads h
        left join (
          select w.id, (array_agg(w.gate_id))[1] as shut
            from wanting w
            join gate g on g.id = w.gate_id
           where w.place > coalesce(g.capacity, 2147483647) - g.used
           group by w.id
        ) as s on s.id = h.id
    ),
    through as (
      update live set gate = null, permits = j.needs
        from judged j
       where live.id = j.id and j.shut is null
      returning live.permits
    ),
    taken as (
      update gate set used = used + t.n
        from (select p.id, count(*)::integer as n from through cross join unnest(permits) as p (id) group by 1) as t
       where gate.id = t.id
    ),
    moved as (
      update live set gate = j.shut
        from judged j
       where live.id = j.id and live.gate <> j.shut
      returning 1
    )
    select (select count(*) from through) as passed, (select count(*) from moved) as moved into v_turn;
    v_passed := v_passed + v_turn.passed;
    exit when v_turn.passed + v_turn.moved = 0;
  end loop;
  return v_passed;
end $$;
