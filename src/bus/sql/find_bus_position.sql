-- Returns the number before the first event of the bus log that was accepted at p_at or later; the last number if there is none.
--
-- It bisects the numbers. The clocks of several servers differ a little, so near p_at it may be off by as much.
create or replace function find_bus_position(p_at timestamptz) returns bigint
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_low bigint;
  v_high bigint;
  v_middle bigint;
  v_seq bigint;
  v_at timestamptz;
begin
  select coalesce(min(seq), 0) - 1, coalesce(max(seq), 0) into v_low, v_high from bus_event;
  while v_low < v_high loop
    -- rounds down also below 0
    v_middle := v_low + (v_high - v_low) / 2;
    select seq, at into v_seq, v_at from bus_event where seq > v_middle order by seq limit 1;
    if v_seq is null or v_at >= p_at then
      v_high := v_middle;
    else
      v_low := v_seq;
    end if;
  end loop;
  return greatest(v_low, 0);
end $$;
