-- What workers need of a version (src/jobs/version-work.ts), so that nobody waits until its document is parsed again. Null: the
-- version is large, or release 0.1.0 wrote it. Then its document is parsed.
alter table job_version add column work json;
