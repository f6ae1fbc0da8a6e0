-- Backfills: instants of a job's triggers are fired again, in bounded pieces between live firings.
--
-- A piece, what it puts and how far the backfill has come are one commit: a piece is fired once, whoever dies and
-- however many schedulers there are. I1 stands behind it: the cause of its firings is the backfill's id.
--
-- Which runs are a backfill's: those of the job's tasks at the instants of its range that were queued since it was made.
--
-- Lock order: backfill, backfill_trigger, then as in the stages.

create table backfill (
  id uuid primary key,
  job_id uuid not null references job,
  -- asking for the same name again makes no second one
  name text,
  -- both inclusive
  first_at timestamptz not null,
  last_at timestamptz not null,
  policy text not null check (policy in ('earliest', 'latest', 'random')),
  priority priority not null,
  -- leaves out what has fired before, for whatever cause
  only_missing boolean not null,
  seed integer not null,
  state text not null default 'running' check (state in ('running', 'done', 'cancelled')),
  actor text not null,
  created_at timestamptz not null,
  -- since when nothing of it is left to do
  ended_at timestamptz,
  -- what had become of its runs by then
  tally jsonb,
  unique (job_id, name),
  check (last_at >= first_at)
);
create index backfill_job on backfill (job_id, id);
create index backfill_open on backfill (id) where ended_at is null;

create table backfill_trigger (
  backfill_id uuid not null references backfill,
  trigger_id uuid not null references trigger,
  -- the schedule as it was when the backfill was made: what was promised is what fires
  start_at timestamptz not null,
  end_at timestamptz,
  period_ms bigint,
  cron text,
  timezone text,
  from_at timestamptz not null,
  -- exclusive
  to_at timestamptz not null,
  instants integer not null,
  fired integer not null default 0,
  skipped integer not null default 0,
  next_piece integer not null default 0,
  pieces integer not null,
  primary key (backfill_id, trigger_id)
) with (fillfactor = 70);

-- Where a backfill puts tokens in its job: edges may move them.
create function backfill_range(p_backfill uuid, out tasks uuid[], out from_at timestamptz, out to_at timestamptz)
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

-- Fires a piece, unless that has been done or the backfill is cancelled. Whoever cancels waits for a piece under way.
create function fire_backfill(
  p_backfill uuid, p_trigger uuid, p_piece integer, p_instants timestamptz[], p_at timestamptz,
  out created integer, out killed integer
) language plpgsql as $$
declare
  v_backfill backfill%rowtype;
  v_instants timestamptz[] := p_instants;
  v_fired record;
begin
  created := 0;
  killed := 0;
  select * into v_backfill from backfill where id = p_backfill and state = 'running' for share;
  if not found then
    return;
  end if;
  perform 1 from backfill_trigger
   where backfill_id = p_backfill and trigger_id = p_trigger and next_piece = p_piece
     for update;
  if not found then
    return;
  end if;
  if v_backfill.only_missing then
    v_instants := array(
      select i.instant
        from unnest(p_instants) as i (instant)
       where not exists (
         select 1 from firing f
          where f.trigger_id = p_trigger and f.instant = i.instant and f.cause <> p_backfill::text));
  end if;
  -- another process made it, whose clock may be ahead: its runs are queued after it all the same
  select * into v_fired
    from fire_triggers(array_fill(p_trigger, array[cardinality(v_instants)]), v_instants, p_backfill::text,
                       v_backfill.priority, v_backfill.policy, greatest(p_at, v_backfill.created_at));
  update backfill_trigger
     set next_piece = next_piece + 1, fired = fired + v_fired.fired,
         skipped = skipped + cardinality(p_instants) - v_fired.fired
   where backfill_id = p_backfill and trigger_id = p_trigger;
  created := v_fired.created;
  killed := v_fired.killed;
end $$;

-- How a backfill's runs stand: each task at each instant once, by its run that is not finished, its waiting retry, or
-- its newest run. At most p_most finished runs are looked at (null: all); says whether that was the whole.
create function tally_backfill(p_backfill uuid, p_most integer, out counts jsonb, out whole boolean)
language plpgsql stable as $$
declare
  v_since timestamptz := (select created_at from backfill where id = p_backfill);
  v_range record;
begin
  select * into v_range from backfill_range(p_backfill);
  with queued as (
    select case
             when v.worker_id is not null then 'running'
             when v.parked or v.gate is not null then 'waiting'
             else 'ready'
           end as state
      from live v
     where v.task_id = any (v_range.tasks) and v.instant between v_range.from_at and v_range.to_at
       and v.queued_at >= v_since
  ),
  ended as materialized (
    select r.task_id, r.instant, r.state, r.finished_at, r.id
      from run r
     where r.task_id = any (v_range.tasks) and r.instant between v_range.from_at and v_range.to_at
       and r.queued_at >= v_since
     limit p_most
  ),
  newest as (
    select distinct on (e.task_id, e.instant) e.task_id, e.instant, e.state
      from ended e
     order by e.task_id, e.instant, e.finished_at desc, e.id desc
  ),
  counted as (
    select q.state, count(*) as n from queued q group by 1
    union all
    select case when r.run_id is null then n.state::text else 'retry' end, count(*)
      from newest n
      left join retry r on r.task_id = n.task_id and r.instant = n.instant
     where not exists (select 1 from live v where v.task_id = n.task_id and v.instant = n.instant)
     group by 1
  )
  select coalesce((select jsonb_object_agg(c.state, c.n) from counted c), '{}'),
         coalesce((select count(*) from ended) < p_most, true)
    into counts, whole;
end $$;

-- Cancels what is queued or waits to be retried of a cancelled backfill, so many at a time; what people activated by
-- hand at the same instants stays. Where another backfill or a catch-up fires the same instants, one run of each token
-- goes and the others stay: they are all alike. Answers how many; what somebody holds just now is left out.
create function cancel_backfill_runs(
  p_backfill uuid, p_limit integer, p_actor text, p_at timestamptz
) returns integer language plpgsql as $$
declare
  v_backfill backfill%rowtype;
  v_reason text := format('the backfill %s was cancelled', p_backfill);
  v_shared boolean;
  v_range record; v_runs uuid[]; v_done record; v_retries record; v_gates record;
begin
  -- two who do so follow each other: when one returns, nothing is left that the other holds
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

-- Open backfills that are over, or whose queued runs are still to be cancelled. One is over when it has fired all and
-- no run, retry or held token of its job is left in its range, or when its job is gone; a trigger that is no more keeps
-- none open.
create function ripe_backfills(out id uuid, out state text, out over boolean) returns setof record
language sql stable as $$
  select r.id, r.state, r.over
    from (
      select b.id, b.state,
             job.deleted_at is not null
             or not (
               b.state = 'running' and exists (
                 select 1 from backfill_trigger t join trigger on trigger.id = t.trigger_id
                  where t.backfill_id = b.id and t.next_piece < t.pieces and trigger.removed_at is null)
               or exists (
                 select 1 from live v where v.task_id = any (r.tasks) and v.instant between r.from_at and r.to_at)
               or exists (
                 select 1 from retry w where w.task_id = any (r.tasks) and w.instant between r.from_at and r.to_at)
               or exists (
                 select 1 from held h where h.task_id = any (r.tasks) and h.instant between r.from_at and r.to_at)
             ) as over
        from backfill b
        join job on job.id = b.job_id
       cross join lateral backfill_range(b.id) as r
       where b.ended_at is null
    ) as r
   where r.over or r.state = 'cancelled'
$$;

-- Notes that a backfill is over and what became of its runs. One that nobody cancelled says so in the event log.
create function settle_backfill(p_backfill uuid, p_at timestamptz) returns boolean language plpgsql as $$
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
