-- The lag of subscribers over time, for charts.

-- the most events that were queued in the minute, and the age of the oldest, in milliseconds, as the scheduler saw them
alter table subscriber_activity
  add column queued bigint not null default 0,
  add column oldest_ms bigint not null default 0;
