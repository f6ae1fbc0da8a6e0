-- Creates those of the named pools that do not exist, with one place each. Returns their names. Until the transaction ends,
-- none of the named pools can be deleted.
--
-- Locks: gate.
create or replace function make_pools(p_names text[]) returns text[] language plpgsql as $$
declare
  v_made text[];
begin
  with made as (
    insert into gate (id, kind, name, capacity)
    select new_id(), 'pool', p.name, 1
      from (select distinct unnest(p_names) as name order by 1) as p
     where p.name is not null
    on conflict do nothing
    returning name
  )
  select array_agg(name) into v_made from made;
  return v_made;
end $$;
