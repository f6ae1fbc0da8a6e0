-- Until the end of the transaction, no errand of this queue is taken by an acquire. Whoever takes this lock holds no errand locked.
--
-- Locks: (7345, 9) for main, (7345, 10) for aux.
create or replace function lock_errand_queue(p_queue text) returns void language sql as $$
  select pg_advisory_xact_lock(7345, case p_queue when 'main' then 9 else 10 end);
$$;
