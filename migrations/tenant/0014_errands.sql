-- Errands: units of background work, such as "deliver to this subscriber". An errand exists once, whatever its state (I8).

create sequence errand_seq cache 1;

create table errand (
  -- main: deliveries; aux: all other work
  queue text not null check (queue in ('main', 'aux')),
  -- names the work and its arguments, as JSON: ["deliver",["<subscriber>",0]]
  key text not null,
  -- the position among ready errands; a new one each time it becomes ready
  id bigint not null default nextval('errand_seq'),
  -- s: scheduled, r: ready, p: pending at a worker, x: set aside after too many losses
  state "char" not null default 'r' check (state in ('s', 'r', 'p', 'x')),
  -- when a scheduled errand becomes ready
  run_at timestamptz check ((run_at is not null) = (state = 's')),
  -- holds a pending errand
  worker uuid check ((worker is not null) = (state = 'p')),
  -- counts how often it was taken: a write that names an older lease has no effect
  lease integer not null default 0,
  taken_at timestamptz,
  -- workers lost since its last progress
  losses smallint not null default 0,
  -- times it was put back since its last success
  attempts integer not null default 0,
  -- why it was put back or set aside
  reason text,
  primary key (queue, key)
) with (fillfactor = 50);

create index errand_ready on errand (queue, id) where state = 'r';
create index errand_scheduled on errand (queue, run_at) where state = 's';
create index errand_held on errand (worker) where state = 'p';
create index errand_poisoned on errand (queue, key) where state = 'x';

-- processes that take errands. One that has been silent loses what it holds
create table errand_worker (
  id uuid primary key,
  beat_at timestamptz not null
) with (fillfactor = 50);
