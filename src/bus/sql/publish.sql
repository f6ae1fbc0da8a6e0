-- Publishes an event inside the caller's own transaction: `select millrace.publish('orders', 'update', 'https://…')`.
--
-- The event becomes a row of the outbox, which the relay moves to the bus log after the commit; a rollback takes it back. The rules
-- are those of POST /bus/topics/{name}. It runs with the rights of its owner, so a role needs no right on the tables:
--   grant usage on schema millrace to shop;
--   grant execute on function millrace.publish to shop;
--
-- Only one of several open transactions adds the errand of the relay, so that none waits for another. The sweep of couriers finds
-- the rows of a transaction that commits after the relay has run.
--
-- Locks: advisory lock (7345, 9) without waiting, the new row of the errand.
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
  -- a second insert of the errand would wait until the first one's transaction ends
  if pg_try_advisory_xact_lock(7345, 9) then
    insert into errand (queue, key, lease)
    values ('aux', '["relay",[]]', nextval('errand_seq') % 1000000000)
    on conflict do nothing;
  end if;
  perform pg_notify('millrace_bus', '');
end $$;

revoke all on function publish(text, text, text, jsonb, text) from public;
