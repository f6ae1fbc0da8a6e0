-- Sets the limits of a job and its tasks as its document says (null: no limit). Creates missing pools with one place, and
-- returns their names. The next sweep (sweep_gates) admits the runs that may pass now.
--
-- Locks: task, gate by id, then as regate_tasks.
create or replace function set_limits(
  p_job uuid, p_instants integer, p_overlap text, p_tasks uuid[], p_running integer[], p_pools text[], p_at timestamptz
) returns text[] language plpgsql as $$
declare
  v_made text[];
  v_changed uuid[];
begin
  v_made := make_pools(p_pools);
  with wanted as (
    select t.id, nullif(array_remove(array[
             case when p_instants is not null then p_job end,
             case when t.running is not null then t.id end,
             (select gate.id from gate where gate.name = t.pool)], null), '{}') as gates
      from unnest(p_tasks, p_running, p_pools) as t (id, running, pool)
  ),
  changed as (
    update task set gates = w.gates
      from wanted w
     where task.id = w.id and task.gates is distinct from w.gates
    returning task.id
  )
  select array_agg(id) into v_changed from changed;
  insert into gate as g (id, kind, capacity, overlap)
  select l.id, l.kind, l.capacity, coalesce(p_overlap, 'queue')
    from (
      select p_job as id, 'job' as kind, p_instants as capacity
      union all
      select t.id, 'task', t.running from unnest(p_tasks, p_running) as t (id, running)
    ) as l
   where l.capacity is not null or exists (select 1 from gate where gate.id = l.id)
   order by 1
  on conflict (id) do update set capacity = excluded.capacity, overlap = excluded.overlap
   where g.capacity is distinct from excluded.capacity or g.overlap <> excluded.overlap;
  if v_changed is not null then
    perform regate_tasks(v_changed, p_at);
  end if;
  return coalesce(v_made, '{}');
end $$;
