-- Publishes an event inside the caller's own transaction: `select millrace.publish('orders', 'update', 'https://…')`.
--
-- The event becomes a row of the outbox, which the tenant's scheduler moves to the bus log after the commit; a rollback takes it back.
-- The rules are those of POST /bus/topics/{name}. It runs with the rights of its owner, so a role needs no right on the tables:
--   grant usage on schema millrace to shop;
--   grant execute on function millrace.publish to shop;
--
-- The notification wakes the scheduler, on the connection by which it holds the tenant.
create or replace function publish(
  topic text, type text, url text, data jsonb default null, key text default null
) returns void language plpgsql security definer set search_path = millrace, pg_temp as $$
begin
  if topic is null or topic !~ '^[a-z_]{1,64}$' then
    raise exception 'bad topic: must have 1 to 64 lower-case letters and underscores' using errcode = '22023';
  elsif topic like 'millrace\_%' then
    raise exception 'topic claimed: only Millrace publishes to %', topic using errcode = '42501';
  elsif type is null or type not in ('create', 'update', 'delete', 'noop') then
    raise exception 'bad event: type: must be create, update, delete or noop' using errcode = '22023';
  elsif url is null or length(url) > 2048 or url !~* '^https://[^\s?/#]+[^\s?]*$' then
    raise exception 'bad event: url: must be an https URL without a query string' using errcode = '22023';
  elsif jsonb_typeof(data) not in ('object', 'null') or octet_length(data::text) > 16384 then
    raise exception 'bad event: data: must be an object of at most 16384 bytes' using errcode = '22023';
  elsif length(key) not between 1 and 255 then
    raise exception 'bad event: key: must have 1 to 255 characters' using errcode = '22023';
  end if;
  insert into outbox (topic, type, url, data, key, at)
  values (topic, type, url, nullif(data, 'null'::jsonb), key, clock_timestamp());
  perform pg_notify('millrace_outbox', '');
end $$;

revoke all on function publish(text, text, text, jsonb, text) from public;
