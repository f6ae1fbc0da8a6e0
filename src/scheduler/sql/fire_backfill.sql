-- Fires one piece of a backfill, unless the piece was fired before or the backfill is cancelled. A cancellation waits for a
-- piece that is being fired.
--
-- The firings, their tokens and the progress of the backfill are one commit, so a piece fires once. I1 guards this too: the
-- cause of the firings is the id of the backfill. The runs of a backfill are those runs of the job's tasks that were queued
-- since it was created, at instants of its range.
--
-- Locks: backfill, backfill_trigger, then as fire_triggers.
create or replace function fire_backfill(
  p_backfill uuid, p_trigger uuid, p_piece integer, p_instants timestamptz[], p_at timestamptz,
  out created integer, out killed integer
) language plpgsql as $$
declare
  v_backfill backfill%rowtype;
  v_instants timestamptz[] := p_instants;
  v_fired record;
begin
  created := 0;
  killed := 0;
  select * into v_backfill from backfill where id = p_backfill and state = 'running' for share;
  if not found then
    return;
  end if;
  perform 1 from backfill_trigger
   where backfill_id = p_backfill and trigger_id = p_trigger and next_piece = p_piece
     for update;
  if not found then
    return;
  end if;
  if v_backfill.only_missing then
    v_instants := array(
      select i.instant
        from unnest(p_instants) as i (instant)
       where not exists (
         select 1 from firing f
          where f.trigger_id = p_trigger and f.instant = i.instant and f.cause <> p_backfill::text));
  end if;
  -- the clock of the process that created the backfill may be ahead; its runs must still be queued after its creation
  select * into v_fired
    from fire_triggers(array_fill(p_trigger, array[cardinality(v_instants)]), v_instants, p_backfill::text,
                       v_backfill.priority, v_backfill.policy, greatest(p_at, v_backfill.created_at));
  update backfill_trigger
     set next_piece = next_piece + 1, fired = fired + v_fired.fired,
         skipped = skipped + cardinality(p_instants) - v_fired.fired
   where backfill_id = p_backfill and trigger_id = p_trigger;
  created := v_fired.created;
  killed := v_fired.killed;
end $$;
