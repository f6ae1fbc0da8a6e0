-- Returns for each launch the flow that it names, or the one with the id if there is one, and the version that it asks for, by default the
-- newest. One row for each, in order; without a flow, or without such a version, its columns are null.
--
-- It is a function because its plan is kept then: planning took five times as long as executing.
create or replace function find_flows(p_names text[], p_ids uuid[], p_versions integer[])
returns table (flow_id uuid, name text, project_id uuid, newest integer, version integer) language plpgsql stable
  set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  select f.id, f.name, f.project_id, f.version,
         case when u.version is null or u.version = f.version then f.version
              else (select v.version from flow_version v where v.flow_id = f.id and v.version = u.version) end
    from unnest(p_names, p_ids, p_versions) with ordinality as u (name, id, version, n)
    left join lateral (
      select * from flow where flow.name = u.name and flow.deleted_at is null and u.id is null
       union all
      select * from flow where flow.id = u.id
    ) as f on true
   order by u.n;
end $$;
