-- Returns the tasks of a backfill's job, and the range of instants at which the backfill counts tokens. Edges with an offset
-- widen the range.
create or replace function backfill_range(p_backfill uuid, out tasks uuid[], out from_at timestamptz, out to_at timestamptz)
language sql stable as $$
  select array(select task.id from task where task.job_id = b.job_id),
         b.first_at + least(min(e.offset_ms), 0) * interval '1 millisecond',
         b.last_at + greatest(max(e.offset_ms), 0) * interval '1 millisecond'
    from backfill b
    left join backfill_trigger t on t.backfill_id = b.id
    left join trigger_edge e on e.trigger_id = t.trigger_id
   where b.id = p_backfill
   group by b.id
$$;
