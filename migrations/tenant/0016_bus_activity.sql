-- Counts of the bus, made in the commits that append and deliver events, so that no page reads the log for them.

-- Rows change only under the lock of the bus log. In bus_topic, the count would be locked in another order than a deletion locks it.
create table topic_count (
  topic_id integer primary key,
  -- all events that were ever published
  events bigint not null
) with (fillfactor = 50);

create table topic_activity (
  -- the beginning of the minute
  at timestamptz not null,
  topic_id integer not null,
  events bigint not null,
  primary key (at, topic_id)
) with (fillfactor = 50);

create table subscriber_activity (
  at timestamptz not null,
  subscriber_id uuid not null,
  -- events that its receiver has accepted
  events bigint not null default 0,
  -- attempts that failed
  failed integer not null default 0,
  -- from the acceptance of the events to that of their receiver: the sum and the longest, in milliseconds
  latency_ms bigint not null default 0,
  worst_latency_ms bigint not null default 0,
  primary key (at, subscriber_id)
) with (fillfactor = 50);
