-- Hands ready runs out within the commit that applies reports. As in a claim, the n-th run in order of rank gets the n-th
-- place, so a hand-over never overtakes the queue.
--
-- p_polls has an object for each set of lanes: {"lanes": [...], "workers": [...], "incarnations": [...]}, with a worker and
-- an incarnation for each place. Returns an object for each of them: {"runs": [...], "exhausted": boolean}, the latter if
-- nothing that is ready in these lanes was left. Runs beyond p_max_bytes of params come without params and with
-- "fits": false; the caller returns them to the queue.
--
-- It never waits for a lock, because the caller holds locks that come later in the lock order: a worker whose lease another
-- transaction has locked gets nothing, and neither does a worker without a lease. Runs of paused jobs stay where they are; the next claim parks them.
--
-- Locks: live, then lease, both with skip locked.
create or replace function hand_over(p_polls jsonb, p_until timestamptz, p_at timestamptz, p_max_bytes integer)
returns json language plpgsql as $$
declare
  v_poll record; v_ready record; v_given record;
  v_workers uuid[]; v_incarnations bigint[];
  v_bytes bigint := 0;
  v_answers json[] := '{}';
begin
  for v_poll in
    select * from jsonb_to_recordset(p_polls) as p (lanes text[], workers uuid[], incarnations bigint[])
  loop
    select * into v_ready from lock_ready_runs(v_poll.lanes, cardinality(v_poll.workers), '-infinity');
    if v_ready.spots is null then
      v_answers := v_answers || json '{"runs": [], "exhausted": true}';
      continue;
    end if;
    select coalesce(array_agg(p.worker order by p.n), '{}'), array_agg(p.incarnation order by p.n)
      into v_workers, v_incarnations
      from unnest(v_poll.workers, v_poll.incarnations) with ordinality as p (worker, incarnation, n)
     where p.worker = any (array(
       select worker_id
         from lease
        where worker_id = any (v_poll.workers[:cardinality(v_ready.spots)])
          for no key update skip locked));
    select coalesce(json_agg(h), '[]') as runs, count(*) as number, coalesce(sum(h.bytes), 0) as bytes into v_given
      from (
        select r.id, r.task_id, r.instant, r.version, r.attempt, r.priority, r.lease, r.worker_id, r.bytes, r.fits,
               case when r.fits then r.params end as params, case when r.fits then r.node end as node
          from (
            select l.*, m.bytes,
                   v_bytes + coalesce(sum(m.bytes) over (rows between unbounded preceding and 1 preceding), 0)
                     < p_max_bytes as fits
              from lease_runs(
                     v_ready.spots[:cardinality(v_workers)], v_ready.tasks[:cardinality(v_workers)],
                     v_workers, v_incarnations, p_until, p_at) as l
             cross join lateral (
               select coalesce(octet_length(l.params::text), 0) + coalesce(octet_length(l.node::text), 0) as bytes
             ) as m
          ) as r
      ) as h;
    v_bytes := v_bytes + v_given.bytes;
    v_answers := v_answers || json_build_object(
      'runs', v_given.runs,
      'exhausted', v_given.number = cardinality(v_ready.spots) and not exists (
        select 1
          from unnest(v_poll.lanes) as l (lane)
         cross join lateral (
           select 1
             from live
            where live.lane = l.lane and live.worker_id is null and not live.parked and live.gate is null
            limit 1
         ) as r));
  end loop;
  return to_json(v_answers);
end $$;
