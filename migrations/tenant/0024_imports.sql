-- Jobs that an import brought from another product, so that the next import of the same source knows what was changed here since.

create table imported_job (
  job_id uuid primary key references job,
  -- the version that the import wrote: a job with another one was edited here
  version integer not null,
  -- SHA-256 of the document in the source
  digest bytea not null,
  -- whether its start unpauses it: in the source it was not paused
  resume boolean not null,
  -- the job's own, after the import: a later one means that it was edited, paused or unpaused here
  updated_at timestamptz not null,
  started_at timestamptz
);
