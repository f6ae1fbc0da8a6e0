-- What happens: firings, tokens, runs and their logs. The hot tables have no foreign keys (their targets are never
-- deleted while they are referred to, and a check would lock the task's row for every run).

-- I1: an instant of a trigger fires once per cause ('schedule', or the name of a backfill)
create table firing (
  trigger_id uuid not null,
  instant timestamptz not null,
  cause text not null,
  primary key (trigger_id, instant, cause)
);

-- Only the primary key is indexed, so that counting up stays a heap-only update.
create table token (
  task_id uuid not null,
  instant timestamptz not null,
  count integer not null check (count >= 0),
  -- how many runs the last write released
  fire integer not null,
  -- the count at which that write would have fired: the threshold, or out of reach while the task is paused
  reach integer not null,
  priority priority not null,
  -- the trigger or run that counted last
  cause uuid,
  cleared_at timestamptz,
  primary key (task_id, instant)
) with (fillfactor = 70);

-- Tokens that reached their threshold but may not run now; release and sweep read only this.
create table held (
  task_id uuid not null,
  instant timestamptz not null,
  reason text not null,
  primary key (task_id, instant)
);

-- Tasks whose threshold was lowered a moment ago: a stage that was under way may yet count by the old one, so that until
-- then their tokens are looked at again and again.
create table lowered (
  task_id uuid primary key,
  until timestamptz not null
);

-- Runs that are not finished. This small table is queue and outbox in one (I2).
create table live (
  id uuid primary key,
  -- null when the run belongs to a flow's node
  task_id uuid,
  instant timestamptz,
  origin text not null default 'token',
  version integer not null,
  attempt integer not null,
  priority priority not null,
  lane text not null,
  -- queued time less the bonus of the priority, fixed at insert: ageing without updates
  rank timestamptz not null,
  -- ready, but its job was paused after it was queued
  parked boolean not null default false,
  -- the gate at which it waits, and the gates that it has passed and leaves at its end (src/runs/sql/work_gates.sql)
  gate uuid,
  permits uuid[],
  lease integer not null default 0,
  losses smallint not null default 0,
  worker_id uuid,
  incarnation bigint,
  cancel boolean not null default false,
  -- what its end will say, unless it succeeds all the same
  cancel_reason text,
  cause uuid,
  queued_at timestamptz not null,
  claimed_at timestamptz
) with (fillfactor = 70);
create index live_ready on live (lane, rank, id) where worker_id is null and not parked and gate is null;
create index live_gate on live (gate, rank, id) where gate is not null;
create index live_task on live (task_id, instant);
create index live_held on live (worker_id) where worker_id is not null;
create index live_parked on live (task_id) where parked;
create index live_cancel on live (worker_id) where cancel;

-- Finished runs: insert only.
create table run (
  id uuid primary key,
  task_id uuid,
  instant timestamptz,
  origin text not null,
  version integer not null,
  attempt integer not null,
  priority priority not null,
  lease integer not null,
  worker_id uuid,
  state run_state not null,
  reason text,
  exit_code integer,
  cause uuid,
  queued_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null
);
create index run_task on run (task_id, instant);
create index run_finished on run using brin (finished_at) with (autosummarize = on);
-- which tasks went wrong lately, hour by hour: one that does all the time is passed by in one step for each hour
create index run_failed on run (date_bin('1 hour', finished_at, '2000-01-01 00:00:00+00'), task_id)
  where state in ('failure', 'timeout', 'error') and task_id is not null;

create table retry (
  run_id uuid primary key,
  task_id uuid not null,
  instant timestamptz not null,
  attempt integer not null,
  priority priority not null,
  due_at timestamptz not null
);
create index retry_due on retry (due_at);
create index retry_task on retry (task_id, instant);

-- Instants of jobs with a limit of them that have begun and are not over.
create table active_instant (
  job_id uuid not null,
  instant timestamptz not null,
  since timestamptz not null,
  primary key (job_id, instant)
);

-- The parameters an instant of a job was started with.
create table instant_params (
  job_id uuid not null,
  instant timestamptz not null,
  params json not null,
  primary key (job_id, instant)
);

-- What happened in each minute, counted up in the commits that did it: once for all the runs of a commit. Whoever adds to
-- it holds the event log's lock, so nobody waits for its rows.
create table activity (
  -- the beginning of the minute
  at timestamptz primary key,
  -- runs that ended in it
  success integer not null,
  failure integer not null,
  timeout integer not null,
  error integer not null,
  cancelled integer not null,
  -- of these the ones that had started, and how long they were queued, all together and the longest
  started integer not null,
  wait interval not null,
  worst_wait interval not null,
  -- instants that fired when they were due, and how late
  fired integer not null,
  late interval not null,
  worst_late interval not null
) with (fillfactor = 50);

-- One row per worker, not per run: a heartbeat names the runs held (I4).
create table lease (
  worker_id uuid primary key,
  incarnation bigint not null,
  until timestamptz not null,
  beat_at timestamptz,
  holds uuid[] not null default '{}'
) with (fillfactor = 50);

create table log (
  run_id uuid not null,
  lease integer not null,
  number integer not null,
  stream text not null,
  at timestamptz not null,
  data bytea not null,
  primary key (run_id, lease, number)
);
