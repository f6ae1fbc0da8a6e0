-- Cancels at most p_limit queued runs and pending retries of a cancelled backfill. Returns how many. Rows that another
-- transaction has locked are skipped.
--
-- Runs that people activated by hand at the same instants stay. If another backfill or a catch-up fires the same instants,
-- one run of each token is cancelled and the others stay, because the runs cannot be told apart.
--
-- Locks: backfill (so concurrent callers run one after another, and skip no row of each other), live and retry with skip
-- locked, gate by id, the event log.
create or replace function cancel_backfill_runs(
  p_backfill uuid, p_limit integer, p_actor text, p_at timestamptz
) returns integer language plpgsql as $$
declare
  v_backfill backfill%rowtype;
  v_reason text := format('the backfill %s was cancelled', p_backfill);
  v_shared boolean;
  v_range record; v_runs uuid[]; v_done record; v_retries record; v_gates record;
begin
  -- concurrent callers run one after another: when one returns, no row is left that another caller has locked
  select * into v_backfill from backfill where id = p_backfill and state = 'cancelled' for update;
  select * into v_range from backfill_range(v_backfill.id);
  v_shared := exists (
    select 1 from backfill o
     where o.job_id = v_backfill.job_id and o.id <> v_backfill.id and o.state = 'running'
       and o.priority = v_backfill.priority and o.first_at <= v_backfill.last_at and o.last_at >= v_backfill.first_at
    union all
    select 1 from catchup c join trigger t on t.id = c.trigger_id
     where t.job_id = v_backfill.job_id and v_backfill.priority = 'backfill'
       and c.from_at <= v_backfill.last_at and c.to_at > v_backfill.first_at);
  v_runs := array(
    select c.id
      from (
        select v.id, v.task_id, v.instant, row_number() over (partition by v.task_id, v.instant order by v.id desc) as n
          from live v
         where v.task_id = any (v_range.tasks) and v.instant between v_range.from_at and v_range.to_at
           and v.worker_id is null and v.queued_at >= v_backfill.created_at and v.priority = v_backfill.priority
           and v.cause is not null
      ) as c
     where not v_shared or c.n = 1 and not exists (
       select 1 from run r where r.task_id = c.task_id and r.instant = c.instant and r.reason = v_reason)
     order by c.id
     limit p_limit
  );
  select * into v_done from cancel_queued(v_runs, v_reason, p_at);
  with dropped as (
    delete from retry
     where retry.run_id = any (array(
       select r.run_id
         from retry r
         join run on run.id = r.run_id
        where r.task_id = any (v_range.tasks) and r.instant between v_range.from_at and v_range.to_at
          and r.priority = v_backfill.priority and run.queued_at >= v_backfill.created_at and not v_shared
        limit p_limit
          for update of r skip locked))
    returning retry.*
  )
  select array_agg(d.run_id) as runs,
         array_agg(run_body(k.job_id, d.task_id, d.instant, d.attempt, d.priority)) as bodies,
         array_agg(k.job_id) filter (where k.gates[1] = k.job_id) as jobs,
         array_agg(d.instant) filter (where k.gates[1] = k.job_id) as instants
    into v_retries
    from dropped d
    join task k on k.id = d.task_id;
  select * into v_gates
    from work_gates(null, v_done.permits, v_done.jobs || v_retries.jobs, v_done.instants || v_retries.instants, p_at);
  perform append_run_events(
    v_done.cancelled || v_gates.ended, v_done.bodies || v_gates.bodies, null, null, null, p_actor, p_at);
  if v_retries.runs is not null then
    perform append_events(
      3, array_fill('retry.cancelled'::text, array[cardinality(v_retries.runs)]), v_retries.runs, p_actor,
      array_fill(null::uuid, array[cardinality(v_retries.runs)]), p_at, v_retries.bodies);
  end if;
  return coalesce(cardinality(v_done.cancelled), 0) + coalesce(cardinality(v_retries.runs), 0);
end $$;
