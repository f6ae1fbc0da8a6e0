-- Backfills: instants of a job's triggers are fired again, in bounded pieces between live firings.

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
