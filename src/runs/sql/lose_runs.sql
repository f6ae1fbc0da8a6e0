-- Puts runs back into the queue that their worker reports as lost: what executed them is gone. No attempt is spent. The third
-- loss of a run, whether reported or found by take_back_runs, ends it as an error with the reason of this loss. Runs whose
-- cancellation was requested end as cancelled. `owners`: those of the executions that were told.
--
-- Locks: as finish_runs.
create or replace function lose_runs(
  p_runs uuid[], p_leases integer[], p_reasons text[], p_at timestamptz, p_workers uuid[] default null,
  out returned integer, out failed integer, out owners uuid[]
) language plpgsql as $$
declare
  v_held record;
  v_over record; v_done record;
begin
  select * into v_held from lock_runs(p_runs, p_leases, p_workers);
  update live set worker_id = null, incarnation = null, claimed_at = null, losses = losses + 1
   where ctid = any (v_held.spots) and losses < 2 and not cancel;
  get diagnostics returned = row_count;
  failed := 0;
  -- a third loss is rare, and a batch has few reasons
  for v_over in
    select array_agg(v.id) as ids, p_reasons[r.n] as reason
      from unnest(v_held.numbers) as r (n)
      join live v on v.id = p_runs[r.n]
     where v.lease = p_leases[r.n] and v.claimed_at is not null
     group by p_reasons[r.n]
  loop
    v_done := give_up_runs(v_over.ids, concat_ws(': ', 'it was lost three times', nullif(v_over.reason, '')), p_at);
    failed := failed + coalesce(v_done.applied, 0);
    owners := owners || v_done.owners;
  end loop;
end $$;
