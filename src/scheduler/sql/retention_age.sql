-- Returns for how many milliseconds runs of a job are kept. Null: forever.
create or replace function retention_age(p_retention jsonb, p_standard bigint) returns bigint language sql immutable as $$
  select case when p_retention ? 'age_ms' then (p_retention ->> 'age_ms')::bigint else p_standard end
$$;
