-- Processes that drive executions of flows, and which tenants have work for them.

create table conductor (
  -- a new one at each start, and after a pause so long that others may have taken over its executions
  id uuid primary key,
  machine text not null,
  pid integer not null,
  version text not null,
  -- names of the functions that it hosts
  functions text[] not null default '{}',
  -- `leaving`: it takes no new executions
  state text not null check (state in ('up', 'leaving')),
  -- tenants whose executions it drives; once it is dead, those that others have not taken over yet
  tenants uuid[] not null default '{}',
  -- what it has done since it started (src/contract/conductor-tally.ts)
  tally jsonb,
  started_at timestamptz not null,
  beat_at timestamptz not null,
  -- its process is known to be gone
  lost_at timestamptz
) with (fillfactor = 50);

-- what a tenant's scheduler saw when it last looked: whether messages wait, and when the next timer is due
alter table scheduler
  add column flow_inbox boolean not null default false,
  add column next_timer_at timestamptz;
