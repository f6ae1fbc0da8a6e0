-- Moves the marks of triggers (earliest, latest) outwards. All instants between the marks have fired, were skipped, or are
-- recorded for catch-up.
--
-- Marks may lag behind. A trigger that is being edited is skipped, so that the others need not wait; its next instant moves
-- its marks.
--
-- Locks: trigger by id with skip locked.
create or replace function move_triggers(p_triggers uuid[], p_instants timestamptz[]) returns void language plpgsql as $$
declare
  v_free uuid[] := array(
    select id from trigger where id = any (p_triggers) order by id for no key update skip locked);
begin
  update trigger t
     set earliest = least(t.earliest, m.earliest), latest = greatest(t.latest, m.latest)
    from (
      select d.id, min(d.instant) as earliest, max(d.instant) as latest
        from unnest(p_triggers, p_instants) as d (id, instant)
       group by d.id
    ) as m
   where t.id = m.id and t.id = any (v_free);
end $$;
