-- Ends instants of limited jobs that may be over because a retry or a held token was deleted.
--
-- Locks: gate by id, the event log.
create or replace function end_waits(p_jobs uuid[], p_instants timestamptz[], p_actor text, p_at timestamptz)
returns void language plpgsql as $$
declare
  v_gates record;
begin
  select w.* into v_gates
    from (
      select array_agg(g.id) as jobs, array_agg(d.instant) as instants
        from unnest(p_jobs, p_instants) as d (job_id, instant)
        join gate g on g.id = d.job_id
    ) as l, lateral work_gates(null, null, l.jobs, l.instants, p_at) as w;
  perform append_run_events(v_gates.ended, v_gates.bodies, null, null, null, p_actor, p_at);
end $$;
