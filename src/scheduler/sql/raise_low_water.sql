-- Raises the low-water marks of triggers: up to the trigger's own marks, or up to the first instant that waits for catch-up.
-- Returns false, and does nothing, while another transaction fires.
--
-- Locks: advisory lock (7345, 5), tried only; low_water by trigger.
create or replace function raise_low_water(p_triggers uuid[]) returns boolean language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock(7345, 5) then
    return false;
  end if;
  insert into low_water as w (trigger_id, from_at, to_at)
  select t.id, t.earliest, least(t.latest, c.from_at)
    from trigger t
   cross join lateral (select min(catchup.from_at) as from_at from catchup where catchup.trigger_id = t.id) as c
   where t.id = any (p_triggers) and t.earliest < least(t.latest, c.from_at)
   order by 1
  on conflict (trigger_id) do update set
    from_at = least(w.from_at, excluded.from_at), to_at = greatest(w.to_at, excluded.to_at)
   where excluded.from_at < w.from_at or excluded.to_at > w.to_at;
  return true;
end $$;
