-- Returns those of the given executions that have not the given revision, or, where an epoch is given, not that epoch. Of new ones, those
-- that exist.
create or replace function find_lost_executions(
  p_ids uuid[], p_revs integer[], p_epochs integer[], p_new_ids uuid[]
) returns uuid[] language sql stable as $$
  select array_agg(u.id)
    from (select * from unnest(p_ids, p_revs, p_epochs) as u (id, rev, epoch)
           union all
          select n.id, null, null from unnest(p_new_ids) as n (id)) as u
    left join execution e on e.id = u.id
   where e.rev is distinct from u.rev or e.epoch <> u.epoch
$$;
