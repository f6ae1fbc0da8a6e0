-- The control database: who may call, which tenants there are, and what serves them. Nothing here is owned by a tenant.

create table tenant (
  id uuid primary key,
  name text not null unique,
  database text not null unique,
  -- what an operator wants; the scheduler table says what is
  desired text not null default 'on' check (desired in ('on', 'off')),
  created_at timestamptz not null
);

-- a process that runs schedulers of many tenants
create table host (
  id uuid primary key,
  machine text not null,
  pid integer not null,
  engine text not null,
  epoch bigint not null default 0,
  started_at timestamptz not null,
  beat_at timestamptz not null
);

-- the newest word about each tenant's scheduler; every state that is not STARTED has a reason
create table scheduler (
  tenant_id uuid primary key references tenant on delete cascade,
  id uuid not null,
  state text not null check (state in ('ENABLED', 'ALLOCATED', 'STARTED', 'DISABLED')),
  reason text,
  host_id uuid references host on delete set null,
  engine text not null,
  queued_triggers integer not null default 0,
  next_trigger_id uuid,
  -- some of those that fire next, the first first
  next_triggers uuid[] not null default '{}',
  changed_at timestamptz not null,
  beat_at timestamptz not null,
  check (state = 'STARTED' or reason is not null)
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
