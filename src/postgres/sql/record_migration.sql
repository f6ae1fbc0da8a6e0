-- Records that a migration was applied by hand. Raises an exception unless begin_migration was called in this transaction,
-- the number is the next one, and name and checksum are well-formed.
create or replace function record_migration(p_number integer, p_name text, p_checksum text) returns void
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
