-- The launcher: which one is active, what it decided for each tenant, who holds the slots, what it was asked to do.

-- every launcher process there is; one of them holds the lease
create table launcher (
  id uuid primary key,
  machine text not null,
  pid integer not null,
  version text not null,
  started_at timestamptz not null,
  beat_at timestamptz not null
);

create table launcher_lease (
  singleton boolean primary key default true check (singleton),
  holder uuid,
  -- grows with every new holder; whatever a launcher writes is conditional on it
  epoch bigint not null default 0,
  renewed_at timestamptz not null default '-infinity'
);
insert into launcher_lease default values;

-- The launcher's entry for each tenant: the seed's state machine, and its order to a host. Only the launcher writes here.
create table launch (
  tenant_id uuid primary key references tenant on delete cascade,
  state text not null check (state in ('ENABLED', 'ALLOCATED', 'STARTED', 'DISABLED')),
  -- every state that is not STARTED has one: a code of src/control/reasons.ts, and a sentence
  code text,
  reason text,
  -- the transaction whose end the next start waits for, as shown to people; what is waited on is its lock
  wait_on text,
  -- version recorded in its database when last looked at; null: not installed, or never seen
  version text,
  -- the last one that was found, null as above: when another is found, the audit tells of it
  told_version text,
  -- the order: this host is to run it (or, not ordered, to be rid of it). A higher number is a newer order.
  -- That host may be gone by now, and its order with it: a reference would lock all rows of its tenants when it is forgotten.
  host_id uuid,
  engine text,
  order_no bigint not null default 0,
  ordered boolean not null default false,
  -- its scheduler was told to end and has not yet: keeps its slot, and nothing is started before
  ending boolean not null default false,
  -- failures in a row, and how often its host was lost with it: those who may be to blame share a host with fewer others
  failures integer not null default 0,
  suspicion integer not null default 0,
  retry_at timestamptz,
  -- when its housekeeping was last given a slot: whoever was served longest ago comes first
  housekept_at timestamptz,
  changed_at timestamptz not null,
  check (state = 'STARTED' or (code is not null and reason is not null))
);
create index launch_host on launch (host_id) where host_id is not null;

-- Permission to run one background unit. A row without `granted_at` waits in line.
create table slot (
  id uuid primary key,
  kind text not null check (kind in ('launcher', 'scheduler', 'housekeeping')),
  tenant_id uuid references tenant on delete cascade,
  -- the process it is for: a launcher, or a host. Null: a scheduler that has no host yet
  holder uuid,
  reason text not null,
  asked_at timestamptz not null,
  granted_at timestamptz,
  -- housekeeping for which none was free for long: it runs in the slot of its tenant's scheduler, and takes none of its own
  lent boolean not null default false,
  check ((kind = 'launcher') = (tenant_id is null)),
  check (kind = 'housekeeping' or not lent)
);
create unique index slot_launcher on slot (kind) where kind = 'launcher';
create unique index slot_scheduler on slot (tenant_id) where kind = 'scheduler';

-- settings that are changed live
create table setting (
  name text primary key,
  value text not null,
  changed_at timestamptz not null,
  changed_by text not null
);

-- What the launcher was asked to do. Written and committed by the sender at once, whatever becomes of its transaction.
create table message (
  id bigint primary key generated always as identity,
  kind text not null check (kind in ('start', 'stop', 'restart')),
  tenant_id uuid not null,
  tenant text not null,
  sender text not null,
  -- what for: `upgrade to 0.2.0`
  cause text not null,
  -- the sender's transaction, and the backend it runs on; null: there is none to wait for
  xid xid8,
  pid integer,
  sent_at timestamptz not null,
  deadline timestamptz not null,
  outcome text check (outcome in (
    'accepted', 'stopped', 'waiting_for_transaction', 'started', 'no_engine', 'no_slot', 'not_installed', 'unreachable',
    'crashed', 'gone', 'superseded', 'timed_out')),
  detail text,
  acknowledged_at timestamptz,
  -- when the outcome became final
  settled_at timestamptz
);
create index message_open on message (id) where settled_at is null;
create index message_tenant on message (tenant_id, id);
