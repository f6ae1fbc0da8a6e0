-- The key of the errand that delivers to one strand of a subscriber.
create or replace function deliver_key(p_subscriber uuid, p_strand smallint) returns text
language sql immutable parallel safe as $$
  select '["deliver",["' || p_subscriber::text || '",' || p_strand::text || ']]'
$$;
