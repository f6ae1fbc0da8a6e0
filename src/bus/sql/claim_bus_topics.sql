-- Creates the topics that do not exist, and gives those without an owner to the first publisher that names them.
--
-- Topics that Millrace itself publishes have no owner either; the caller never names them.
--
-- Locks: rows of bus_topic, by name.
create or replace function claim_bus_topics(p_topics text[], p_owners uuid[], p_owner_names text[], p_at timestamptz)
returns void language plpgsql as $$
begin
  insert into bus_topic as t (name, owner, owner_name, created_at)
  select distinct on (c.name) c.name, c.owner, c.owner_name, p_at
    from unnest(p_topics, p_owners, p_owner_names) with ordinality as c (name, owner, owner_name, n)
   order by c.name, c.n
  on conflict (name) where deleted_at is null
  do update set owner = excluded.owner, owner_name = excluded.owner_name
   where t.owner is null;
end $$;
