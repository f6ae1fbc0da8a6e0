-- Deletes finished runs: first at most p_chunks of their log chunks, then the runs themselves with what says which node they
-- belong to, and the tokens that become idle. A run with a pending retry stays. `more`: call again for the same runs.
--
-- Each call is one commit, and a call that is killed leaves nothing half deleted.
--
-- Locks: advisory lock (7345, 6), tried only: of two calls at once, one does nothing. Then as forget_tokens.
create or replace function forget_runs(
  p_runs uuid[], p_chunks integer,
  out runs integer, out tokens integer, out firings integer, out instants integer, out chunks integer, out more boolean
) language plpgsql as $$
declare
  v_tasks uuid[]; v_instants timestamptz[];
begin
  runs := 0; tokens := 0; firings := 0; instants := 0; chunks := 0; more := false;
  if not pg_try_advisory_xact_lock(7345, 6) then
    return;
  end if;
  delete from log
   where ctid = any (array(select l.ctid from log l where l.run_id = any (p_runs) limit p_chunks));
  get diagnostics chunks = row_count;
  if chunks = p_chunks then
    more := true;
    return;
  end if;
  with gone as (
    delete from run r
     where r.id = any (p_runs) and not exists (select 1 from retry w where w.run_id = r.id)
    returning r.id, r.task_id, r.instant
  ),
  nodes as (
    delete from node_run n where n.run_id = any (array(select g.id from gone g where g.task_id is null))
  ),
  places as (
    select g.task_id, g.instant, count(*) as n from gone g group by 1, 2
  )
  -- a node's runs have no task
  select coalesce(sum(p.n), 0), array_agg(p.task_id) filter (where p.task_id is not null),
         array_agg(p.instant) filter (where p.task_id is not null)
    into runs, v_tasks, v_instants
    from places p;
  select f.tokens, f.firings, f.instants into tokens, firings, instants from forget_tokens(v_tasks, v_instants) as f;
end $$;
