-- Returns open backfills that are over, and cancelled ones that may still have queued runs.
--
-- A backfill is over when it has fired all its instants and its job has no run, retry or held token left in its range, or
-- when its job was deleted. A removed trigger does not keep a backfill open.
create or replace function ripe_backfills(out id uuid, out state text, out over boolean) returns setof record
language sql stable as $$
  select r.id, r.state, r.over
    from (
      select b.id, b.state,
             job.deleted_at is not null
             or not (
               b.state = 'running' and exists (
                 select 1 from backfill_trigger t join trigger on trigger.id = t.trigger_id
                  where t.backfill_id = b.id and t.next_piece < t.pieces and trigger.removed_at is null)
               or exists (
                 select 1 from live v where v.task_id = any (r.tasks) and v.instant between r.from_at and r.to_at)
               or exists (
                 select 1 from retry w where w.task_id = any (r.tasks) and w.instant between r.from_at and r.to_at)
               or exists (
                 select 1 from held h where h.task_id = any (r.tasks) and h.instant between r.from_at and r.to_at)
             ) as over
        from backfill b
        join job on job.id = b.job_id
       cross join lateral backfill_range(b.id) as r
       where b.ended_at is null
    ) as r
   where r.over or r.state = 'cancelled'
$$;
