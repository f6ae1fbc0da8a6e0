-- Runs of a flow's nodes, and results of runs.

-- What a run without a task is about: a node of an execution, at one attempt. It has all that a worker needs, so that no
-- definition is fetched for it.
create table node_run (
  run_id uuid primary key,
  execution_id uuid not null,
  nid text not null,
  attempt integer not null,
  -- name, timeout_ms, params and the runtime block
  work json not null,
  -- whose stash its task may read; null: only the global one
  project_id uuid,
  -- an attempt of a node is queued once. Also finds the runs of an execution
  constraint node_run_attempt unique (execution_id, nid, attempt)
);

-- What a task made, as JSON: of a run under way what the task has sent by itself. Most runs have none.
alter table live add column result json;
alter table run add column result json;
