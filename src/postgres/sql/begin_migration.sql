-- Begins a migration by hand: waits until no engine is connected to the tenant, and keeps engines out until the transaction
-- ends. Returns the recorded version.
--
-- The launcher sees the request for the lock and stops the tenant's scheduler. It ends connections that do not leave within
-- five seconds. After the transaction it reads the version again, whether the transaction was committed or rolled back.
--
--   begin;
--   select millrace.begin_migration();
--   -- each pending file of migrations/tenant, followed by
--   select millrace.record_migration(12, '0012_example.sql', 'its SHA-256 in hex');
--   -- then the functions of the engine: dist/sql/tenant.sql
--   select millrace.finish_migration('0.3.0');
--   commit;
--
-- Locks: advisory locks (7345, 2) and (7345, 4), in this order.
create or replace function begin_migration() returns text language plpgsql set search_path from current as $$
begin
  perform pg_advisory_xact_lock(7345, 2);
  perform pg_advisory_xact_lock(7345, 4);
  return (select version from installation);
end $$;
