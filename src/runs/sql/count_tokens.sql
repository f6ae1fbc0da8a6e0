-- Adds to the counts of tokens. Where a count reaches its threshold, subtracts the threshold and creates the runs, all in one
-- statement (I2).
--
-- Pairs of (task, instant) must be distinct. One call may release several runs of a token: the division yields how many. The
-- threshold of a paused task is out of reach, so its tokens only collect. All runs of a call have the same rank and are
-- claimed by id, so p_order ('earliest', 'latest', 'random', or null for any) decides the order in which ids are made.
--
-- Locks: token by (task, instant), then held.
create or replace function count_tokens(
  p_tasks uuid[], p_instants timestamptz[], p_counts integer[], p_priorities priority[], p_causes uuid[],
  p_order text, p_at timestamptz,
  out created uuid[], out causes uuid[], out bodies text[], out gates uuid[], out lanes text[]
) language plpgsql as $$
declare
  v_task record; v_token record;
begin
  if p_tasks is null then
    return;
  end if;
  -- one token of a task that is not paused takes short statements (see finish_run)
  if cardinality(p_tasks) = 1 then
    select k.threshold, k.version, k.lane, k.gates[1] as gate, k.job_id into v_task
      from task k
     where k.id = p_tasks[1] and not k.paused;
    if found then
      insert into token as t (task_id, instant, count, fire, reach, priority, cause)
      values (p_tasks[1], p_instants[1], p_counts[1] % v_task.threshold, p_counts[1] / v_task.threshold, v_task.threshold,
              p_priorities[1], p_causes[1])
      on conflict (task_id, instant) do update set
        count = (t.count + excluded.count + excluded.fire * excluded.reach) % excluded.reach,
        fire = (t.count + excluded.count + excluded.fire * excluded.reach) / excluded.reach,
        reach = excluded.reach,
        priority = case when t.count > 0 then greatest(t.priority, excluded.priority) else excluded.priority end,
        cause = excluded.cause
      returning t.fire, t.priority into v_token;
      for i in 1..v_token.fire loop
        created[i] := new_id();
        causes[i] := p_causes[1];
        bodies[i] := run_body(v_task.job_id, p_tasks[1], p_instants[1], 1, v_token.priority);
        insert into live (id, task_id, instant, version, attempt, priority, lane, rank, gate, cause, queued_at)
        values (created[i], p_tasks[1], p_instants[1], v_task.version, 1, v_token.priority, v_task.lane,
                p_at - head_start(v_token.priority), v_task.gate, p_causes[1], p_at);
      end loop;
      if v_token.fire > 0 and v_task.gate is null then
        lanes := array[v_task.lane];
      elsif v_token.fire > 0 then
        gates := array_fill(v_task.gate, array[v_token.fire]);
      end if;
      return;
    end if;
  end if;
  with counted as (
    insert into token as t (task_id, instant, count, fire, reach, priority, cause)
    select a.task_id, a.instant, a.n % k.reach, a.n / k.reach, k.reach, a.priority, a.cause
      from unnest(p_tasks, p_instants, p_counts, p_priorities, p_causes) as a (task_id, instant, n, priority, cause)
      join lateral (
        select case when task.paused then 2147483647 else task.threshold end as reach
          from task
         where task.id = a.task_id
      ) as k on true
     order by 1, 2
    on conflict (task_id, instant) do update set
      count = (t.count + excluded.count + excluded.fire * excluded.reach) % excluded.reach,
      fire = (t.count + excluded.count + excluded.fire * excluded.reach) / excluded.reach,
      reach = excluded.reach,
      priority = case when t.count > 0 then greatest(t.priority, excluded.priority) else excluded.priority end,
      cause = excluded.cause
    returning t.task_id, t.instant, t.count, t.fire, t.reach, t.priority, t.cause
  ),
  held_back as (
    insert into held (task_id, instant, reason)
    select c.task_id, c.instant, 'paused'
      from counted c
      join task k on k.id = c.task_id
     where c.reach = 2147483647 and c.count >= k.threshold
    on conflict do nothing
  ),
  made as materialized (
    select new_id() as id, c.task_id, c.instant, c.priority, c.cause, k.version, k.lane, k.gates[1] as gate, k.job_id
      from counted c
      join task k on k.id = c.task_id
     cross join generate_series(1, c.fire)
     where c.fire > 0
     order by case p_order
       when 'earliest' then extract(epoch from c.instant)
       when 'latest' then -extract(epoch from c.instant)
       when 'random' then random()::numeric
     end
  ),
  readied as (
    insert into live (id, task_id, instant, version, attempt, priority, lane, rank, gate, cause, queued_at)
    select id, task_id, instant, version, 1, priority, lane, p_at - head_start(priority), gate, cause, p_at from made
  )
  select array_agg(id), array_agg(cause), array_agg(run_body(job_id, task_id, instant, 1, priority)),
         array_agg(gate) filter (where gate is not null), array_agg(distinct lane) filter (where gate is null)
    into created, causes, bodies, gates, lanes
    from made;
end $$;
