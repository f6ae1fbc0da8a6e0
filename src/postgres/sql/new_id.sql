-- Returns a new id of version 7: ids made one after another lie on the same index pages.
--
-- PostgreSQL 18 has uuidv7(). Older servers get an expression that puts milliseconds first, then the fraction of a
-- millisecond in twelve bits, so that ids made within one statement sort in the order in which they were made.
do $$
begin
  if current_setting('server_version_num')::integer >= 180000 then
    create or replace function new_id() returns uuid language sql volatile as 'select uuidv7()';
  else
    create or replace function new_id() returns uuid language sql volatile as $f$
      -- milliseconds, then the fraction of one in twelve bits: ids of one statement sort in the order they were made
      select (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4096 / 1000), 3, '0') || substr(r, 17))::uuid
        from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as us,
                     replace(gen_random_uuid()::text, '-', '') as r) as made
    $f$;
  end if;
end $$;
