-- Returns how far ahead of its queue time a run of this priority is ranked. A backfill waits longer than a normal run by at
-- most the difference.
create or replace function head_start(p_priority priority) returns interval language sql immutable as $$
  select case p_priority
    when 'high' then interval '4 hours'
    when 'normal' then interval '1 hour'
    when 'low' then interval '15 minutes'
    else interval '0'
  end
$$;
