-- Returns a new id of version 7: ids made one after another lie on the same index pages.
--
-- PostgreSQL 18 has uuidv7(). Older servers get an expression that puts milliseconds first, then the fraction of a
-- millisecond in twelve bits, so that ids made within one statement sort in the order in which they were made. The clock's
-- value is used once and there is no subquery, so that the planner can inline the function: a function that is not
-- inlined is planned again by every statement that calls it.
do $$
begin
  if current_setting('server_version_num')::integer >= 180000 then
    create or replace function new_id() returns uuid language sql volatile as 'select uuidv7()';
  else
    create or replace function new_id() returns uuid language sql volatile as $f$
      select (overlay(lpad(to_hex((date_part('epoch', clock_timestamp()) * 4096000)::bigint), 15, '0') placing '7' from 13 for 0)
              || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
    $f$;
  end if;
end $$;
