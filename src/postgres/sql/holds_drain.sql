-- Returns whether this session holds the tenant's `drain` lock exclusively, that is, whether it has called begin_migration
-- in this transaction.
create or replace function holds_drain() returns boolean language sql stable set search_path from current as $$
  select exists (
    select from pg_locks
     where locktype = 'advisory' and classid = 7345 and objid = 4 and objsubid = 2
       and mode = 'ExclusiveLock' and granted and pid = pg_backend_pid()
       and database = (select oid from pg_database where datname = current_database()))
$$;
