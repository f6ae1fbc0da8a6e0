-- Ends runs that no worker can report any more: as cancelled if a cancellation was requested, otherwise as an error. The
-- caller has locked the runs. Returns how many have ended, and the owners of the executions that were told.
--
-- Locks: as finish_runs.
create or replace function give_up_runs(
  p_runs uuid[], p_reason text, p_at timestamptz, out applied integer, out owners uuid[]
) language plpgsql as $$
declare
  v_over record;
begin
  select array_agg(v.id) as ids, array_agg(v.lease) as leases,
         array_agg(case when v.cancel then 'cancelled' else 'error' end::run_state) as states,
         array_agg(case when v.cancel then 'cancelled' else p_reason end) as reasons,
         array_agg(null::integer) as exit_codes, array_agg(null::timestamptz) as started
    into v_over
    from live v
   where v.id = any (p_runs);
  select f.applied, f.owners into applied, owners
    from finish_runs(v_over.ids, v_over.leases, v_over.states, v_over.reasons, v_over.exit_codes, v_over.started, p_at) f;
end $$;
