-- Takes the lock of the bus log and returns its last number. Makes sure that p_count more events fit into its partitions.
--
-- Call it as the last step of a transaction, and give the numbers after it to events. Until that transaction ends, no other
-- transaction can append. The order of the numbers is therefore the order of the commits, and a reader that asks for "after n"
-- never skips an event. The next partition is created a million numbers ahead.
--
-- A partition that has reached bus_state.piece_bytes is closed: the numbers that are left in it are skipped. Its files are looked at
-- once in 256 numbers.
--
-- Locks: advisory lock (7345, 8), after every other lock of the transaction.
create or replace function open_bus_log(p_count integer) returns bigint language plpgsql as $$
declare
  v_last bigint;
  v_partition bigint;
  v_is_full boolean;
begin
  perform pg_advisory_xact_lock(7345, 8);
  select case when is_called then last_value else last_value - 1 end into v_last from bus_seq;
  if (v_last + p_count) / 256 > v_last / 256 then
    v_partition := (v_last + 1) / 4000000;
    select pg_total_relation_size(to_regclass(format('bus_event_%s', v_partition))) >= b.piece_bytes into v_is_full
      from bus_state b
     where b.one;
    if v_is_full then
      v_last := (v_partition + 1) * 4000000 - 1;
    end if;
  end if;
  v_partition := (v_last + p_count) / 4000000;
  if to_regclass(format('bus_event_%s', v_partition)) is null then
    perform add_bus_partition(v_partition);
  end if;
  if (v_last + p_count + 1000000) / 4000000 > v_partition
    and to_regclass(format('bus_event_%s', v_partition + 1)) is null then
    perform add_bus_partition(v_partition + 1);
  end if;
  return v_last;
end $$;
