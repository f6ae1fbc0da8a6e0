-- Returns those of the given instants that are not below the low-water mark of their trigger. Marks do not move until the
-- caller's commit.
--
-- Locks: advisory lock (7345, 5), shared.
create or replace function above_low_water(
  p_triggers uuid[], p_instants timestamptz[], out triggers uuid[], out instants timestamptz[]
) language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(7345, 5);
  triggers := p_triggers;
  instants := p_instants;
  if exists (select 1 from low_water where to_at > (select min(i.instant) from unnest(p_instants) as i (instant))) then
    select coalesce(array_agg(d.trigger_id order by d.n), '{}'), coalesce(array_agg(d.instant order by d.n), '{}')
      into triggers, instants
      from unnest(p_triggers, p_instants) with ordinality as d (trigger_id, instant, n)
     where not exists (
       select 1 from low_water w
        where w.trigger_id = d.trigger_id and d.instant >= w.from_at and d.instant < w.to_at);
  end if;
end $$;
