-- What people define: projects, jobs with their versions, triggers, tasks and the edges between them.

create type priority as enum ('backfill', 'low', 'normal', 'high');
create type edge_kind as enum ('success', 'failure', 'done');
create type run_state as enum ('success', 'failure', 'timeout', 'error', 'cancelled');

create table project (
  id uuid primary key,
  name text not null,
  description text not null,
  config jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create unique index project_name on project (name) where deleted_at is null;

create table job (
  id uuid primary key,
  project_id uuid not null references project,
  name text not null,
  description text not null,
  paused boolean not null,
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create unique index job_name on job (project_id, name) where deleted_at is null;

create table job_version (
  job_id uuid not null references job,
  version integer not null,
  definition json not null,
  actor text not null,
  at timestamptz not null,
  primary key (job_id, version)
);

-- A trigger or task that a new version no longer names is removed: it stops, its history stays readable. The same name
-- later is the same trigger or task again.
create table trigger (
  id uuid primary key,
  job_id uuid not null references job,
  name text not null,
  start_at timestamptz not null,
  end_at timestamptz,
  period_ms bigint,
  cron text,
  timezone text,
  offset_ms bigint not null,
  catchup text not null,
  catchup_window_ms bigint,
  -- the instants between which every one has fired or been skipped
  earliest timestamptz,
  latest timestamptz,
  removed_at timestamptz,
  unique (job_id, name),
  check ((period_ms is null) <> (cron is null)),
  check (period_ms > 0),
  check (end_at > start_at)
) with (fillfactor = 80);

-- Missed instants still to be fired, in bounded pieces between live firings.
create table catchup (
  trigger_id uuid not null references trigger,
  from_at timestamptz not null,
  to_at timestamptz not null,
  policy text not null,
  next_piece integer not null default 0,
  pieces integer not null,
  seed integer not null,
  -- schedule, policy and window by which the pieces were cut; null: not known
  plan text,
  primary key (trigger_id, from_at),
  check (to_at > from_at)
);

create table task (
  id uuid primary key,
  job_id uuid not null references job,
  name text not null,
  version integer not null,
  lane text not null,
  threshold integer not null check (threshold >= 1),
  -- while set the task makes no runs: its job is paused or gone, or a new version no longer names it
  paused boolean not null,
  max_attempts integer not null check (max_attempts >= 1),
  retry_delay_ms bigint not null,
  retry_factor double precision not null,
  retry_cap_ms bigint,
  retry_jitter double precision not null,
  retry_on run_state[] not null,
  -- what its runs must pass, in this order: the job's gate, its own, its pool's; null: nothing
  gates uuid[],
  removed_at timestamptz,
  unique (job_id, name)
);

-- A limit (src/runs/sql/work_gates.sql): of a job's active instants or a task's runs, with the id of that job or task; or a pool, shared by the
-- tasks that name it.
create table gate (
  id uuid primary key,
  kind text not null check (kind in ('job', 'task', 'pool')),
  -- a pool's
  name text check ((name is null) = (kind <> 'pool')),
  -- null: no limit any more
  capacity integer check (capacity >= 0),
  -- a job's: what happens to an instant that comes while all are taken
  overlap text not null default 'queue' check (overlap in ('queue', 'skip', 'cancel_older')),
  used integer not null default 0 check (used >= 0)
) with (fillfactor = 50);
create unique index gate_pool on gate (name);

create table trigger_edge (
  trigger_id uuid not null references trigger,
  task_id uuid not null references task,
  offset_ms bigint not null,
  primary key (trigger_id, task_id, offset_ms)
);
create index trigger_edge_task on trigger_edge (task_id);

create table task_edge (
  parent_id uuid not null references task,
  child_id uuid not null references task,
  kind edge_kind not null,
  offset_ms bigint not null,
  primary key (parent_id, kind, child_id, offset_ms)
);
create index task_edge_child on task_edge (child_id);

-- Opaque bytes, encrypted (I12): written by people, read by tasks; the job's own are written by tasks for tasks.
create table global_stash (
  name text primary key,
  data bytea not null
);
create table project_stash (
  project_id uuid not null references project,
  name text not null,
  data bytea not null,
  primary key (project_id, name)
);
create table job_stash (
  job_id uuid not null references job,
  instant timestamptz not null,
  name text not null,
  data bytea not null,
  primary key (job_id, instant, name)
);
