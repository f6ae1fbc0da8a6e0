-- Puts runs back into the queue unfinished, for a worker that drains. This does not count as a loss. Runs whose cancellation
-- was requested end as cancelled; `owners`: those of the executions that were told.
--
-- Locks: as finish_runs.
create or replace function return_runs(
  p_runs uuid[], p_leases integer[], p_at timestamptz, p_workers uuid[] default null,
  out returned integer, out owners uuid[]
) language plpgsql as $$
declare
  v_held record;
  v_cancelled uuid[];
begin
  select * into v_held from lock_runs(p_runs, p_leases, p_workers);
  v_cancelled := array(select v.id from live v where v.ctid = any (v_held.spots) and v.cancel);
  update live set worker_id = null, incarnation = null, claimed_at = null
   where ctid = any (v_held.spots) and not cancel;
  get diagnostics returned = row_count;
  owners := (give_up_runs(v_cancelled, null, p_at)).owners;
end $$;
