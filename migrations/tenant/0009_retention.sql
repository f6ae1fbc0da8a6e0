-- Retention: old rows are deleted in small batches, each in its own commit.

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
