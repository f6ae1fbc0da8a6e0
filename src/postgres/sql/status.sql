-- Returns the tenant's version, its newest migration, the number of connections that engines hold, and whether a migration
-- is in progress.
create or replace function status(
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
