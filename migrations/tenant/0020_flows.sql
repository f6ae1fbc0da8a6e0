-- Flows: definitions, executions with their commits, timers, messages and work items.
--
-- The hot tables have no foreign keys. Times are parameters of the statements that write them.

-- Events about definitions of flows, and about executions.
insert into topic (id, name) values (6, 'millrace_flows'), (7, 'millrace_executions');

-- A definition. Its documents are in flow_version, and never change.
create table flow (
  id uuid primary key,
  name text not null,
  -- whose stash and configuration its tasks use
  project_id uuid,
  -- the newest
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create unique index flow_name on flow (name) where deleted_at is null;

create table flow_version (
  flow_id uuid not null,
  version integer not null,
  document json not null,
  actor text not null,
  at timestamptz not null,
  primary key (flow_id, version)
);

-- The head of an execution: every commit compares and sets `rev` (I9).
create table execution (
  id uuid primary key,
  -- 0: accepted, but its launch has not been interpreted
  rev integer not null,
  commit_id uuid,
  -- how often the owner has changed
  epoch integer not null default 0,
  -- the conductor in charge; it need not be alive
  owner uuid,
  -- 0 live, 1 paused, 2 incident, 3 done, 4 failed, 5 cancelled. A live one is shown as running or waiting, which follows from
  -- `calls` and `tasks`: it changes with every step, and must not be part of an index
  status smallint not null,
  -- calls of hosted functions under way, and 1 more if inner messages are left. A new owner has to repeat these
  calls integer not null default 0,
  -- runs of workers under way
  tasks integer not null default 0,
  flow_id uuid not null,
  version integer not null,
  -- it follows a document of its own (execution_document), because a part of its tree was swapped
  own_document boolean not null default false,
  key text,
  -- the node that called it, of this execution, and the depth of such calls
  parent uuid,
  parent_nid text,
  parent_attempt integer,
  depth smallint not null default 0,
  -- the layout of its commits
  format smallint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz
) with (fillfactor = 50);
create unique index execution_key on execution (key) where key is not null;
create index execution_owner on execution (owner) where status < 3;
create index execution_flow on execution (flow_id, id);
create index execution_status on execution (status, id) where status in (1, 2, 4);
create index execution_parent on execution (parent) where parent is not null;
create index execution_ended on execution (ended_at) where ended_at is not null;

-- What each commit changed. This is the history, and the state is the fold of it.
create table commit (
  execution_id uuid not null,
  rev integer not null,
  commit_id uuid not null,
  -- the conductor that committed
  member uuid,
  at timestamptz not null,
  -- who sent the message; null: a machine
  actor text,
  -- the message, the delta and what left
  entry json not null,
  primary key (execution_id, rev)
);

-- The newest whole state of an execution, so that not all deltas are read. Older commits may be deleted.
create table snapshot (
  execution_id uuid primary key,
  rev integer not null,
  state json not null
);

-- Documents of executions whose tree was swapped, by the revision from which they hold.
create table execution_document (
  execution_id uuid not null,
  rev integer not null,
  document json not null,
  primary key (execution_id, rev)
);

create table timer (
  execution_id uuid not null,
  -- node and timer: `0_1-7/timeout`
  name text not null,
  generation integer not null,
  due_at timestamptz not null,
  primary key (execution_id, name)
);
create index timer_due on timer (due_at);

-- Conditions that are not times. `function`: a call waits until some conductor hosts the function `topic`.
create table tracker (
  execution_id uuid not null,
  name text not null,
  kind text not null,
  topic text not null,
  primary key (execution_id, name)
);
create index tracker_topic on tracker (kind, topic);

-- Messages that no commit has consumed.
create table inbox (
  id text not null,
  execution_id uuid not null,
  at timestamptz not null,
  body json not null,
  primary key (execution_id, id)
);
create index inbox_at on inbox (at, execution_id);

-- Tasks of people that wait for an answer.
create table workitem (
  id uuid primary key,
  execution_id uuid not null,
  nid text not null,
  attempt integer not null,
  -- of the task
  name text not null,
  title text not null,
  assignee text,
  team text,
  -- the fields of the answer
  form json not null,
  input json not null,
  due_at timestamptz,
  claimed_by text,
  claimed_until timestamptz,
  created_at timestamptz not null,
  constraint workitem_attempt unique (execution_id, nid, attempt)
);
create index workitem_assignee on workitem (assignee, id) where assignee is not null;
create index workitem_team on workitem (team, id) where team is not null;

-- Values to search executions by.
create table label (
  execution_id uuid not null,
  name text not null,
  value text not null,
  primary key (execution_id, name)
);
create index label_value on label (name, value, execution_id);
