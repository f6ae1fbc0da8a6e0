-- Takes runs back from lost workers (I4, see lost_runs) and puts them back into the queue. A run that was lost three times
-- ends as an error. A run whose cancellation was requested ends as cancelled. `owners`: those of the executions that were told.
--
-- Locks: live by id, then as finish_runs.
create or replace function take_back_runs(p_slack interval, p_at timestamptz, out returned integer, out failed integer,
  out owners uuid[]) language plpgsql as $$
declare
  v_lost uuid[];
  v_done record;
begin
  -- find candidates, lock their rows, then check again: the second check sees what others committed meanwhile
  v_lost := lost_runs(null, p_slack, p_at);
  perform 1 from live where id = any (v_lost) order by id for update;
  v_lost := lost_runs(v_lost, p_slack, p_at);
  update live set worker_id = null, incarnation = null, claimed_at = null, losses = losses + 1
   where id = any (v_lost) and losses < 2 and not cancel;
  get diagnostics returned = row_count;
  v_done := give_up_runs(array(select v.id from live v where v.id = any (v_lost) and v.worker_id is not null),
                         'its worker was lost three times', p_at);
  failed := v_done.applied;
  owners := v_done.owners;
end $$;
