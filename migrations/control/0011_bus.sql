-- The event bus: identities of keys, couriers, and the tenants that they serve.

-- Topics and subscriptions belong to an identity, so that a rotated key keeps them: the id of the first key. Null: its own id.
alter table key add column identity uuid;
create index key_identity on key (identity) where identity is not null;
-- a key that was rotated is accepted until then
alter table key add column expires_at timestamptz;

alter table key drop constraint key_role_check;
-- client: publishes and subscribes
alter table key add constraint key_role_check
  check (role in ('root', 'operator', 'viewer', 'client', 'publisher', 'subscriber', 'worker', 'conductor'));

-- a process that fans events out and delivers batches
create table courier (
  id uuid primary key,
  machine text not null,
  pid integer not null,
  version text not null,
  -- what it has done since it started (src/contract/courier-tally.ts): it serves no metrics, gateways read this
  tally jsonb,
  started_at timestamptz not null,
  beat_at timestamptz not null
) with (fillfactor = 50);

-- tenants whose bus has subscribers
create table bus (
  tenant_id uuid primary key references tenant on delete cascade,
  subscribers integer not null,
  changed_at timestamptz not null
);
