-- Returns the instant from which no token is counted any more: the last one that people can write down. Without it, a cycle
-- of tasks with an offset would move on for ever.
create or replace function end_of_time() returns timestamptz language sql immutable as $$
  select timestamptz '10000-01-01 00:00:00+00'
$$;
