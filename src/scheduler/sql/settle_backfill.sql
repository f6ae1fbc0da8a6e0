-- Records that a backfill is over, and the counts of its runs. Unless it was cancelled, appends an event.
--
-- Locks: backfill, the event log.
create or replace function settle_backfill(p_backfill uuid, p_at timestamptz) returns boolean language plpgsql as $$
declare
  v_backfill backfill%rowtype;
  v_state text;
  v_counts record;
begin
  select * into v_backfill from backfill where id = p_backfill and ended_at is null for update;
  if not found then
    return false;
  end if;
  v_state := case
    when v_backfill.state = 'running' and exists (
      select 1 from job where id = v_backfill.job_id and deleted_at is null) then 'done'
    else 'cancelled'
  end;
  update backfill
     set state = v_state, ended_at = p_at, tally = (select t.counts from tally_backfill(p_backfill, null) as t)
   where id = p_backfill;
  if v_backfill.state = 'running' then
    select sum(t.instants) as total, sum(t.fired) as fired, sum(t.skipped) as skipped into v_counts
      from backfill_trigger t
     where t.backfill_id = p_backfill;
    perform append_events(
      2, array['backfill.' || v_state], array[p_backfill], 'scheduler', array[null::uuid], p_at,
      array[json_build_object(
        'job', v_backfill.job_id, 'name', v_backfill.name, 'first', v_backfill.first_at, 'last', v_backfill.last_at,
        'instants', json_build_object(
          'total', v_counts.total, 'fired', v_counts.fired, 'skipped', v_counts.skipped))::text]);
  end if;
  return true;
end $$;
