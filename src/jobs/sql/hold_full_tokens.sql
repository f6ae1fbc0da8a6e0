-- Records tokens as held whose count has reached a threshold that was lowered. release_tokens releases them.
--
-- Locks: held by (task, instant).
create or replace function hold_full_tokens(p_tasks uuid[]) returns void language sql as $$
  insert into held (task_id, instant, reason)
  select t.task_id, t.instant, 'threshold'
    from token t
    join task k on k.id = t.task_id
   where t.task_id = any (p_tasks) and t.count >= k.threshold
   order by 1, 2
  on conflict do nothing
$$;
