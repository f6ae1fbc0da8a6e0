-- Raises MR001 unless p_epoch is the epoch of the current launcher lease. Call it first in every transaction of a launcher.
--
-- The row lock makes a successor wait for the commit of this transaction before it takes the lease.
--
-- Locks: launcher_lease (for share), before every other lock of the transaction.
create or replace function assert_epoch(p_epoch bigint) returns void language plpgsql as $$
begin
  perform from launcher_lease where epoch = p_epoch for share;
  if not found then
    raise exception 'another launcher has taken over' using errcode = 'MR001';
  end if;
end $$;
