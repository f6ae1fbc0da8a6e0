-- The control database: who may call, which tenants there are, and what serves them. Nothing here is owned by a tenant.

create table tenant (
  id uuid primary key,
  name text not null unique,
  database text not null unique,
  -- the database itself, whatever it is called: tells a rename from a drop; null until it was seen on our server
  database_oid oid unique,
  -- what an operator wants; `launch` says what is
  desired text not null default 'on' check (desired in ('on', 'off')),
  -- it is off because it is being dropped: what was desired before. Whoever drops it may have died on the way
  leaving text check (leaving in ('on', 'off')),
  -- found on the server, not registered by anyone: forgotten when its database is gone
  discovered boolean not null default false,
  -- shares its host with no other tenant
  own_host boolean not null default false,
  created_at timestamptz not null
);

-- What tenants were called before: tasks that are under way have it in the address they were given. Kept for a day; a tenant
-- that has the name now comes first.
create table former_name (
  name text primary key,
  tenant_id uuid not null references tenant on delete cascade,
  until timestamptz not null
);

create function keep_former_name() returns trigger language plpgsql as $$
begin
  insert into former_name (name, tenant_id, until) values (old.name, old.id, now() + interval '1 day')
  on conflict (name) do update set tenant_id = excluded.tenant_id, until = excluded.until;
  return null;
end $$;

-- whoever renames it, and however
create trigger keep_former_name after update of name on tenant
  for each row when (old.name <> new.name) execute function keep_former_name();

-- a process that runs schedulers of many tenants, all of one engine version
create table host (
  id uuid primary key,
  machine text not null,
  pid integer not null,
  engine text not null,
  -- resident memory, in bytes
  memory bigint not null default 0,
  -- it has been told to end, or has decided to: gets no more tenants
  leaving boolean not null default false,
  -- a launcher has started it: it may be sent away when it is not needed any more
  on_demand boolean not null default false,
  -- tenants of whom it cannot write what it would say (somebody has their row locked): its silence on them means nothing
  unsaid uuid[] not null default '{}',
  started_at timestamptz not null,
  beat_at timestamptz not null
);

-- a host's word about the newest order it was given for a tenant; only hosts write here. A word on an older order than the
-- one that is recorded changes nothing: a host that was asleep cannot overwrite its successor's.
create table scheduler (
  tenant_id uuid primary key references tenant on delete cascade,
  id uuid not null,
  host_id uuid not null,
  -- the host that had it running last: what that one has left behind on another server is known by this
  ran_on uuid,
  order_no bigint not null,
  phase text not null check (phase in ('starting', 'running', 'ended')),
  -- why it ended or has not come to run: a code of src/control/reasons.ts, and a sentence
  code text,
  reason text,
  engine text not null,
  queued_triggers integer not null default 0,
  next_trigger_id uuid,
  -- some of those that fire next, the first first
  next_triggers uuid[] not null default '{}',
  -- whether runs were ready when it last looked: gateways need not ask every tenant
  ready boolean not null default false,
  -- what it has done since its host started (src/contract/tally.ts): the host serves no metrics, whoever does reads this
  tally jsonb,
  changed_at timestamptz not null,
  beat_at timestamptz not null
);

-- a process that serves HTTP; leases run out only while one of them has been serving for a while
create table gateway (
  id uuid primary key,
  addr text not null,
  version text not null,
  serving_since timestamptz not null,
  beat_at timestamptz not null
);

create table worker (
  id uuid primary key,
  incarnation bigint not null,
  name text not null,
  addr text not null,
  version text not null,
  places integer not null,
  running integer not null,
  runtimes text[] not null,
  queues text[] not null,
  -- whose runs it may hold: its next life must be told to them
  tenants uuid[] not null default '{}',
  first_seen_at timestamptz not null,
  beat_at timestamptz not null
);

-- only the SHA-256 of a key is kept: 128 random bits need no salt and no slow hash (I12)
create table key (
  id uuid primary key,
  name text not null,
  role text not null check (role in ('root', 'operator', 'viewer', 'publisher', 'subscriber', 'worker', 'conductor')),
  tenant_id uuid references tenant on delete cascade,
  hash bytea not null unique,
  created_at timestamptz not null,
  created_by text not null,
  revoked_at timestamptz,
  -- root, worker and conductor serve the whole installation; every other role belongs to one tenant
  check ((role in ('root', 'worker', 'conductor')) = (tenant_id is null))
);

-- a browser's session, and the one-time links that open one
create table session (
  hash bytea primary key,
  key_id uuid references key on delete cascade,
  role text not null,
  tenant_id uuid references tenant on delete cascade,
  actor text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create table sign_in_link (
  hash bytea primary key,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
