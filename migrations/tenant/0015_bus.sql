-- The event bus: topics, a log of its own, subscribers, and how far each has come.
--
-- The bus log is separate from the lifecycle log (`event`): in one log, a busy bus made a run's append 2 to 20 times as slow.
-- Numbers are taken under the advisory lock (7345, 8) in the last step before the commit, so number order is visible order.

create table bus_topic (
  id integer primary key generated always as identity,
  name text not null,
  -- the identity of the key that may publish; null: Millrace itself
  owner uuid,
  owner_name text not null,
  created_at timestamptz not null,
  deleted_at timestamptz
) with (fillfactor = 50);
create unique index bus_topic_name on bus_topic (name) where deleted_at is null;

create sequence bus_seq cache 1;

create table bus_event (
  seq bigint not null,
  topic_id integer not null,
  -- of the ordering key, or of the URL: chooses the strand
  key_hash integer not null,
  -- the only subscriber that receives it; null: all
  target uuid,
  at timestamptz not null,
  -- the finished element of a delivery's array
  body text not null,
  primary key (seq)
) partition by range (seq);
alter table bus_event alter column body set storage external;
create index bus_event_topic on bus_event (topic_id, seq);

create table bus_event_0 (like bus_event including all);
alter table bus_event attach partition bus_event_0 for values from (0) to (4000000);

-- one row: which events were fanned out, and which state of the subscriptions that needs
create table bus_state (
  one boolean primary key default true check (one),
  store text not null default 'postgres' check (store in ('postgres', 'redis')),
  -- the number of the last event that was counted for its readers
  fanned bigint not null default 0,
  -- changes with every subscription
  revision bigint not null default 0
) with (fillfactor = 50);
insert into bus_state default values;

create table subscriber (
  id uuid primary key,
  -- <name of its key>--<8 hex digits>
  name text not null unique,
  -- of the key that subscribed: one subscriber for each
  identity uuid not null unique,
  kind text not null check (kind in ('http', 'pull')),
  callback text check ((callback is not null) = (kind = 'http')),
  -- the user name of Basic in deliveries, encrypted
  credential bytea,
  -- signing secrets, encrypted: the newest first, at most two
  secrets bytea[] not null default '{}',
  state text not null default 'active' check (state in ('active', 'paused', 'disabled')),
  -- why it is paused or disabled
  reason text,
  health smallint not null default 100 check (health between 0 and 100),
  last_attempted_at timestamptz,
  -- when it last took a batch, exact to 5 s
  last_delivered_at timestamptz,
  -- since when every delivery has failed; null: the last one succeeded
  first_failed_at timestamptz,
  -- deliveries per second; null: as many as it takes
  rate integer check (rate > 0),
  -- null: the defaults of the installation
  max_attempts integer check (max_attempts > 0),
  max_age_ms bigint check (max_age_ms > 0),
  request_ms integer check (request_ms > 0),
  created_at timestamptz not null
) with (fillfactor = 50);

-- a revision: what a subscriber is subscribed to, from an event's number on
create table subscription (
  subscriber_id uuid not null references subscriber on delete cascade,
  -- events after this number
  from_seq bigint not null,
  topics integer[] not null,
  filter jsonb,
  max_events integer not null check (max_events between 1 and 10000),
  max_bytes integer not null check (max_bytes > 0),
  window_ms integer not null check (window_ms between 0 and 3600000),
  -- the window begins anew with every event
  quiet boolean not null default false,
  strands smallint not null default 1 check (strands between 1 and 64),
  ordering text not null default 'subscriber' check (ordering in ('subscriber', 'key')),
  primary key (subscriber_id, from_seq)
);

-- how far one strand of a subscriber has come
create table reader (
  subscriber_id uuid not null references subscriber on delete cascade,
  strand smallint not null,
  -- all events up to this number were delivered, set aside or not for it
  pos bigint not null,
  -- events after it that were counted for it and are not delivered
  queued bigint not null default 0 check (queued >= 0),
  -- when the first of them was accepted
  oldest_at timestamptz,
  -- the last event of a batch that was closed before it was full
  batch_end bigint,
  -- of the current batch
  attempts integer not null default 0,
  -- attempts that failed since the last success, of all batches, and since when
  failures integer not null default 0,
  first_failed_at timestamptz,
  -- events delivered
  sent bigint not null default 0,
  -- of a subscriber that pulls: the id of the batch that a consumer holds, its events, and until when nobody else gets it
  leased_batch text,
  leased_events integer,
  leased_until timestamptz,
  primary key (subscriber_id, strand)
) with (fillfactor = 50);

-- a reader of its own over a range of the past
create table replay (
  id uuid primary key,
  subscriber_id uuid not null references subscriber on delete cascade,
  from_seq bigint not null,
  to_seq bigint not null,
  pos bigint not null,
  batch_end bigint,
  attempts integer not null default 0,
  only_undelivered boolean not null default false,
  state text not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),
  -- events sent so far
  sent bigint not null default 0,
  by text not null,
  at timestamptz not null
) with (fillfactor = 50);
create index replay_subscriber on replay (subscriber_id, at);

-- a batch that was given up
create table dead_letter (
  id uuid primary key,
  subscriber_id uuid not null references subscriber on delete cascade,
  batch text not null,
  first_seq bigint not null,
  last_seq bigint not null,
  events integer not null,
  -- null: dropped by retention before it could be delivered
  body text,
  code text not null,
  status integer,
  attempts integer not null,
  first_failed_at timestamptz,
  at timestamptz not null,
  unique (subscriber_id, batch)
);
create index dead_letter_at on dead_letter (subscriber_id, at);

-- attempts: every failure, and at most 100 successes a second
create table delivery (
  id bigint primary key generated always as identity,
  subscriber_id uuid not null,
  at timestamptz not null,
  batch text not null,
  attempt integer not null,
  events integer not null,
  status integer,
  ms integer not null,
  code text,
  excerpt text
);
create index delivery_at on delivery (subscriber_id, at);

-- what publishers repeat: an Idempotency-Key or an event's own id, kept for a day
create table publish_key (
  topic_id integer not null,
  -- k: an Idempotency-Key, i: an event's own id; then its text
  key text not null,
  -- the numbers of the first and the last event that it covers
  seq bigint not null,
  last_seq bigint not null,
  -- of the body that came with an Idempotency-Key: the key must not be used with another one
  digest bytea,
  at timestamptz not null,
  primary key (topic_id, key)
);
create index publish_key_at on publish_key (at);

-- events published inside a user's own transaction; the relay moves them to the bus log
create table outbox (
  id bigint primary key generated always as identity,
  topic text not null,
  type text not null,
  url text not null,
  data jsonb,
  key text,
  at timestamptz not null
);

-- the lifecycle events of the bus itself
insert into topic (id, name) values (5, 'millrace_bus');
