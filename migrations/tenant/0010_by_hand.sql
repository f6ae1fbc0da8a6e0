-- For whoever migrates a tenant by a tool of their own, in plain SQL. Nobody has to be told: the launcher sees the lock that
-- is asked for, ends the tenant's scheduler, and looks at the version again when the transaction has ended, however it ends.
--
--   begin;
--   select millrace.begin_migration();
--   …the engine's migrations, each followed by…
--   select millrace.record_migration(11, '0011_example.sql', 'its SHA-256, in hex');
--   select millrace.finish_migration('0.2.0');
--   commit;

create function holds_drain() returns boolean language sql stable set search_path from current as $$
  select exists (
    select from pg_locks
     where locktype = 'advisory' and classid = 7345 and objid = 4 and objsubid = 2
       and mode = 'ExclusiveLock' and granted and pid = pg_backend_pid()
       and database = (select oid from pg_database where datname = current_database()))
$$;

-- Waits until no connection of any engine is left, and keeps it so until the transaction ends. Answers the version that is
-- recorded. Connections that do not leave by themselves are ended by the launcher after five seconds.
create function begin_migration() returns text language plpgsql set search_path from current as $$
begin
  perform pg_advisory_xact_lock(7345, 2);
  perform pg_advisory_xact_lock(7345, 4);
  return (select version from installation);
end $$;

create function record_migration(p_number integer, p_name text, p_checksum text) returns void
language plpgsql set search_path from current as $$
declare
  v_next integer := (select coalesce(max(number), 0) + 1 from migration);
begin
  if not holds_drain() then
    raise exception 'this transaction has not called millrace.begin_migration()';
  end if;
  if p_number is distinct from v_next then
    raise exception 'the next migration is number %, not %', v_next, p_number;
  end if;
  if coalesce(p_name, '') not like lpad(p_number::text, 4, '0') || '\_%.sql' then
    raise exception 'migration % is in a file called %_….sql, not %',
      p_number, lpad(p_number::text, 4, '0'), coalesce(p_name, 'null');
  end if;
  if p_checksum !~ '^[0-9a-f]{64}$' then
    raise exception 'the checksum of % is not a SHA-256 in hexadecimal digits', p_name;
  end if;
  insert into migration (number, name, checksum) values (p_number, p_name, p_checksum);
end $$;

-- Such that versions compare as in src/kernel/version.ts: numbers by value and before words, a release after its pre-releases
-- ('~' comes after all that a word can have), builds as one. Null: no engine could be of it.
create function version_order(p_version text) returns text[] language sql immutable set search_path from current as $$
  select array(
    select case when part ~ '^[0-9]+$' then '0' || lpad(part, 100, '0') else '1' || part end
      from (select split_part(p_version, '+', 1) as known) bare
     cross join lateral unnest(string_to_array(split_part(known, '-', 1), '.')
             || coalesce(string_to_array(substring(known from '-(.*)'), '.'), array['~'])) with ordinality as parts (part, place)
     order by place)
   where length(p_version) <= 100 and p_version ~
     '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$'
$$;

-- From the commit on, the engine of this version serves the tenant. An older one never knew what a newer one wrote.
create function finish_migration(p_version text) returns void language plpgsql set search_path from current as $$
declare
  v_recorded text := (select version from installation);
begin
  if not holds_drain() then
    raise exception 'this transaction has not called millrace.begin_migration()';
  end if;
  if version_order(p_version) is null then
    raise exception '% is not a version, such as 1.2.3', coalesce(p_version, 'null');
  end if;
  if version_order(p_version) collate "C" < version_order(v_recorded) collate "C" then
    raise exception 'the tenant is at %; % is older, and there is no way back', v_recorded, p_version
      using hint = format('If no engine was ever of %s, it was recorded by mistake: update millrace.installation instead.',
                          v_recorded);
  end if;
  update installation set version = p_version, updated_at = clock_timestamp();
end $$;

-- How the tenant stands: its version, its newest migration, how many connections engines hold, and whether somebody migrates.
create function status(
  out version text, out newest_migration text, out connections integer, out migrating boolean
) language plpgsql stable set search_path from current as $$
begin
  select i.version into status.version from installation i;
  select m.name into newest_migration from migration m order by m.number desc limit 1;
  select count(*) filter (where mode = 'ShareLock' and granted), count(*) filter (where mode = 'ExclusiveLock') > 0
    into connections, migrating
    from pg_locks
   where locktype = 'advisory' and classid = 7345 and objid = 4 and objsubid = 2
     and database = (select oid from pg_database where datname = current_database());
end $$;
