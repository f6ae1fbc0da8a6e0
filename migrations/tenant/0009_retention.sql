-- Retention: what is old goes, in small batches, each a commit of its own.
--
-- It waits for nobody: a token or job that someone holds is left for a later pass, and of two that prune at once one
-- does nothing. So it has no place in the lock order, and wherever it is killed it leaves whole things behind.

-- What the document says: age_ms and runs; null is for ever, and what is not there is the installation's to say.
alter table job add column retention jsonb not null default '{}';

-- A task's runs by when they ended. What they did in the last hour, which of them are the newest and which are old are
-- each one walk along it, whatever history lies below. A BRIN index costs less to write, but tells none of these for one
-- job without reading all others' runs, and forgets what it knows once space is used again.
create index run_ended on run (task_id, finished_at);
drop index run_finished;

-- These lose their oldest rows all the time: a fifth of them dead would be a million of five. Giving the tail of the file
-- back locks everybody out for a moment, and it is needed again at once.
alter table run set (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
alter table token set (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
alter table firing set (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
alter table log set (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off, toast.vacuum_truncate = off);

-- The low-water mark of a trigger (I1): every instant of its schedule from from_at (inclusive) to to_at (exclusive) has
-- been dealt with and never fires again, so that firings there may go.
create table low_water (
  trigger_id uuid primary key references trigger,
  from_at timestamptz not null,
  to_at timestamptz not null,
  check (to_at > from_at)
);
create index low_water_to on low_water (to_at);

-- Those of these instants that lie below no mark. Until the caller's commit no mark moves: what is fired stays right.
create function above_low_water(
  p_triggers uuid[], p_instants timestamptz[], out triggers uuid[], out instants timestamptz[]
) language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(7345, 5);
  triggers := p_triggers;
  instants := p_instants;
  if exists (select 1 from low_water where to_at > (select min(i.instant) from unnest(p_instants) as i (instant))) then
    select coalesce(array_agg(d.trigger_id order by d.n), '{}'), coalesce(array_agg(d.instant order by d.n), '{}')
      into triggers, instants
      from unnest(p_triggers, p_instants) with ordinality as d (trigger_id, instant, n)
     where not exists (
       select 1 from low_water w
        where w.trigger_id = d.trigger_id and d.instant >= w.from_at and d.instant < w.to_at);
  end if;
end $$;

-- Moves these triggers' marks as far as all has been dealt with: between the trigger's own marks, up to what is still to
-- be caught up. Only while nobody fires; false where somebody does.
create function raise_low_water(p_triggers uuid[]) returns boolean language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock(7345, 5) then
    return false;
  end if;
  insert into low_water as w (trigger_id, from_at, to_at)
  select t.id, t.earliest, least(t.latest, c.from_at)
    from trigger t
   cross join lateral (select min(catchup.from_at) as from_at from catchup where catchup.trigger_id = t.id) as c
   where t.id = any (p_triggers) and t.earliest < least(t.latest, c.from_at)
   order by 1
  on conflict (trigger_id) do update set
    from_at = least(w.from_at, excluded.from_at), to_at = greatest(w.to_at, excluded.to_at)
   where excluded.from_at < w.from_at or excluded.to_at > w.to_at;
  return true;
end $$;

-- What of a job is kept for how long, in milliseconds; null: for ever.
create function retention_age(p_retention jsonb, p_standard bigint) returns bigint language sql immutable as $$
  select case when p_retention ? 'age_ms' then (p_retention ->> 'age_ms')::bigint else p_standard end
$$;

-- Forgets instants of jobs at which there are no tokens any more: what tasks stashed there, and the parameters. Whoever
-- starts something in a job holds its row while it looks for parameters: so do we.
create function forget_instants(p_jobs uuid[], p_instants timestamptz[]) returns integer language plpgsql as $$
declare
  v_jobs uuid[] := array(
    select job.id from job
     where job.id in (
       select d.job_id from unnest(p_jobs, p_instants) as d (job_id, instant)
        where exists (select 1 from instant_params p where p.job_id = d.job_id and p.instant = d.instant)
           or exists (select 1 from job_stash s where s.job_id = d.job_id and s.instant = d.instant))
     order by 1
       for no key update skip locked);
  v_gone record;
begin
  if v_jobs = '{}' then
    return 0;
  end if;
  with empty as materialized (
    select d.job_id, d.instant
      from (select distinct u.job_id, u.instant from unnest(p_jobs, p_instants) as u (job_id, instant)) as d
     where d.job_id = any (v_jobs)
       and not exists (
         select 1 from task k join token t on t.task_id = k.id and t.instant = d.instant where k.job_id = d.job_id)
       and not exists (
         select 1 from task k join live v on v.task_id = k.id and v.instant = d.instant where k.job_id = d.job_id)
  ),
  stashed as (
    delete from job_stash s using empty e where s.job_id = e.job_id and s.instant = e.instant returning 1
  ),
  started as (
    delete from instant_params p using empty e where p.job_id = e.job_id and p.instant = e.instant returning 1
  )
  select (select count(*) from stashed) as stashed, (select count(*) from started) as started into v_gone;
  return v_gone.stashed + v_gone.started;
end $$;

-- Forgets tokens at which nothing is left: no count, no run of any kind, no retry, not held; and what hangs on them, the
-- firings that put them and what was kept for their instants. A token that is being counted is not idle: it stays. So do
-- the schedule's firings above the low-water mark, and those of a backfill that is not over.
create function forget_tokens(
  p_tasks uuid[], p_instants timestamptz[], out tokens integer, out firings integer, out instants integer
) language plpgsql as $$
declare
  v_tasks uuid[]; v_instants timestamptz[];
  v_open text[] := array(select id::text from backfill where ended_at is null);
begin
  select array_agg(l.task_id), array_agg(l.instant) into v_tasks, v_instants
    from (
      select t.task_id, t.instant
        from token t
       where (t.task_id, t.instant) in (
         select d.task_id, d.instant from unnest(p_tasks, p_instants) as d (task_id, instant))
         and t.count = 0
       order by 1, 2
         for update skip locked
    ) as l;
  -- a statement of its own: what was committed before we held the token is seen, and now nobody can change it
  with gone as (
    delete from token t
     using unnest(v_tasks, v_instants) as d (task_id, instant)
     where t.task_id = d.task_id and t.instant = d.instant and t.count = 0
       and not exists (select 1 from run r where r.task_id = d.task_id and r.instant = d.instant)
       and not exists (select 1 from live v where v.task_id = d.task_id and v.instant = d.instant)
       and not exists (select 1 from retry r where r.task_id = d.task_id and r.instant = d.instant)
       and not exists (select 1 from held h where h.task_id = d.task_id and h.instant = d.instant)
    returning t.task_id, t.instant
  )
  select array_agg(g.task_id), array_agg(g.instant) into v_tasks, v_instants from gone g;
  tokens := coalesce(cardinality(v_tasks), 0);
  delete from firing f
   using (
     select distinct e.trigger_id, d.instant - e.offset_ms * interval '1 millisecond' as instant
       from unnest(v_tasks, v_instants) as d (task_id, instant)
       join trigger_edge e on e.task_id = d.task_id
   ) as p
   where f.trigger_id = p.trigger_id and f.instant = p.instant
     and case when f.cause = 'schedule' then exists (
           select 1 from low_water w
            where w.trigger_id = p.trigger_id and p.instant >= w.from_at and p.instant < w.to_at)
         else f.cause <> all (v_open) end;
  get diagnostics firings = row_count;
  select forget_instants(array_agg(k.job_id), array_agg(d.instant)) into instants
    from unnest(v_tasks, v_instants) as d (task_id, instant)
    join task k on k.id = d.task_id;
end $$;

-- Forgets finished runs: first what they wrote, at most p_chunks of it in one call, then the runs themselves with the
-- tokens they leave idle. A run whose retry waits stays. `more`: call again for the same runs.
create function forget_runs(
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
    returning r.task_id, r.instant
  ),
  places as (
    select g.task_id, g.instant, count(*) as n from gone g group by 1, 2
  )
  -- a flow's runs have no task
  select coalesce(sum(p.n), 0), array_agg(p.task_id) filter (where p.task_id is not null),
         array_agg(p.instant) filter (where p.task_id is not null)
    into runs, v_tasks, v_instants
    from places p;
  select f.tokens, f.firings, f.instants into tokens, firings, instants from forget_tokens(v_tasks, v_instants) as f;
end $$;

-- What no pruned run led to is found by walking along the tables, a stretch at a time: a token that was cleared before
-- it ever ran, a firing whose edge is gone, a stash at an instant that never ran.

create function sweep_tokens(
  p_task uuid, p_instant timestamptz, p_limit integer, p_age_ms bigint, p_at timestamptz,
  out seen integer, out gone integer, out task_id uuid, out instant timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  v_tasks uuid[]; v_instants timestamptz[]; v_gone record;
begin
  with ahead as (
    select t.task_id, t.instant, t.count, t.cleared_at
      from token t
     where (t.task_id, t.instant) > (p_task, p_instant)
     order by 1, 2
     limit p_limit
  ),
  idle as (
    select a.task_id, a.instant
      from ahead a
      join task k on k.id = a.task_id
      join job on job.id = k.job_id
     where a.count = 0
       and greatest(a.instant, a.cleared_at) < p_at - retention_age(job.retention, p_age_ms) * interval '1 millisecond'
       and not exists (select 1 from run r where r.task_id = a.task_id and r.instant = a.instant)
  )
  select (select count(*) from ahead), l.task_id, l.instant,
         (select array_agg(i.task_id) from idle i), (select array_agg(i.instant) from idle i)
    into seen, task_id, instant, v_tasks, v_instants
    from (select 1) as always
    left join lateral (select a.task_id, a.instant from ahead a order by 1 desc, 2 desc limit 1) as l on true;
  select * into v_gone from forget_tokens(v_tasks, v_instants);
  gone := v_gone.tokens;
end $$;

-- The triggers met on the way, whose marks are to be raised before their firings go.
create function sweep_firings(
  p_trigger uuid, p_instant timestamptz, p_limit integer, p_age_ms bigint, p_at timestamptz,
  out seen integer, out gone integer, out trigger_id uuid, out instant timestamptz, out triggers uuid[]
) language plpgsql as $$
#variable_conflict use_column
declare
  v_open text[] := array(select id::text from backfill where ended_at is null);
begin
  if not pg_try_advisory_xact_lock(7345, 6) then
    return;
  end if;
  with ahead as (
    select f.trigger_id, f.instant, f.cause
      from firing f
     where (f.trigger_id, f.instant) > (p_trigger, p_instant)
     order by 1, 2, 3
     limit p_limit
  ),
  old as (
    select a.*
      from ahead a
      join trigger t on t.id = a.trigger_id
      join job on job.id = t.job_id
     where a.instant < p_at - retention_age(job.retention, p_age_ms) * interval '1 millisecond'
       and not exists (
         select 1
           from trigger_edge e
           join token k on k.task_id = e.task_id and k.instant = a.instant + e.offset_ms * interval '1 millisecond'
          where e.trigger_id = a.trigger_id)
  ),
  spent as (
    delete from firing f
     using old o
     where f.trigger_id = o.trigger_id and f.instant = o.instant and f.cause = o.cause
       and case when o.cause = 'schedule' then exists (
             select 1 from low_water w
              where w.trigger_id = o.trigger_id and o.instant >= w.from_at and o.instant < w.to_at)
           else o.cause <> all (v_open) end
    returning 1
  )
  select (select count(*) from ahead), (select count(*) from spent), l.trigger_id, l.instant,
         array(select distinct o.trigger_id from old o)
    into seen, gone, trigger_id, instant, triggers
    from (select 1) as always
    left join lateral (select a.trigger_id, a.instant from ahead a order by 1 desc, 2 desc limit 1) as l on true;
end $$;

create function sweep_instants(
  p_job uuid, p_instant timestamptz, p_limit integer, p_age_ms bigint, p_at timestamptz,
  out seen integer, out gone integer, out job_id uuid, out instant timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  v_jobs uuid[]; v_instants timestamptz[];
begin
  with ahead as (
    select u.job_id, u.instant
      from (
        (select s.job_id, s.instant from job_stash s
          where (s.job_id, s.instant) > (p_job, p_instant) order by 1, 2 limit p_limit)
        union
        (select p.job_id, p.instant from instant_params p
          where (p.job_id, p.instant) > (p_job, p_instant) order by 1, 2 limit p_limit)
      ) as u
     order by 1, 2
     limit p_limit
  ),
  old as (
    select a.*
      from ahead a
      join job on job.id = a.job_id
     where a.instant < p_at - retention_age(job.retention, p_age_ms) * interval '1 millisecond'
  )
  select (select count(*) from ahead), l.job_id, l.instant,
         (select array_agg(o.job_id) from old o), (select array_agg(o.instant) from old o)
    into seen, job_id, instant, v_jobs, v_instants
    from (select 1) as always
    left join lateral (select a.job_id, a.instant from ahead a order by 1 desc, 2 desc limit 1) as l on true;
  gone := forget_instants(v_jobs, v_instants);
end $$;

-- Drops a partition of the event log. It asks for a moment without readers and writers: who calls sets lock_timeout.
create function drop_event_partition(p_number bigint) returns void language plpgsql as $$
begin
  execute format('drop table if exists %I', format('event_%s', p_number));
end $$;
