-- Commits revisions of many executions, and everything that they do to the world: all or nothing.
--
-- Nothing happens, and `lost` or `known` say why, if an execution has not the revision that the caller has seen, if a new one exists
-- already, or if an execution has the key of a new one. The caller repeats the call without these.
--
-- p_seen are executions that a message has left as they were: their revision is compared, and not locked. What was right at that
-- revision stays right, whatever is committed meanwhile. A conductor that becomes the owner by such a message names the execution in
-- p_ids, with 0 steps and the epoch that it has seen, so that one of two rivals becomes it.
--
-- Each part may be left out, and then costs nothing. The caller orders p_ids by id, and new executions by key.
--
-- Locks: execution by id, then as stop_node_runs and queue_node_runs, inbox, the event log. Heads are updated in the order of p_ids:
-- with hash and merge joins off, the only plan is one lookup for each id.
create or replace function commit_executions(
  p_member uuid, p_commit uuid, p_at timestamptz, p_format smallint,
  p_seen uuid[] default null, p_seen_revs integer[] default null,
  p_ids uuid[] default null, p_revs integer[] default null, p_epochs integer[] default null, p_steps integer[] default null,
  p_statuses smallint[] default null, p_calls integer[] default null, p_tasks integer[] default null,
  p_new_ids uuid[] default null, p_new_steps integer[] default null, p_new_statuses smallint[] default null,
  p_new_calls integer[] default null, p_new_tasks integer[] default null, p_new_flows uuid[] default null,
  p_new_versions integer[] default null, p_new_keys text[] default null, p_new_depths smallint[] default null,
  p_commit_ids uuid[] default null, p_commit_revs integer[] default null, p_actors text[] default null,
  p_entries json[] default null,
  p_snapshot_ids uuid[] default null, p_snapshot_revs integer[] default null, p_snapshots json[] default null,
  p_document_ids uuid[] default null, p_document_revs integer[] default null, p_documents json[] default null,
  p_label_ids uuid[] default null, p_label_names text[] default null, p_label_values text[] default null,
  p_cleared_ids uuid[] default null, p_cleared text[] default null,
  p_timer_ids uuid[] default null, p_timers text[] default null, p_generations integer[] default null,
  p_dues timestamptz[] default null,
  p_untracked_ids uuid[] default null, p_untracked text[] default null,
  p_tracker_ids uuid[] default null, p_trackers text[] default null, p_topics text[] default null,
  p_done_ids uuid[] default null, p_done_nids text[] default null, p_done_attempts integer[] default null,
  p_item_ids uuid[] default null, p_item_executions uuid[] default null, p_item_nids text[] default null,
  p_item_attempts integer[] default null, p_item_names text[] default null, p_item_titles text[] default null,
  p_assignees text[] default null, p_teams text[] default null, p_forms json[] default null,
  p_inputs json[] default null, p_item_dues timestamptz[] default null,
  p_taken_ids uuid[] default null, p_taken text[] default null,
  p_child_ids uuid[] default null, p_child_flows text[] default null, p_child_parents uuid[] default null,
  p_child_nids text[] default null, p_child_attempts integer[] default null, p_child_detached boolean[] default null,
  p_child_depths smallint[] default null, p_child_bodies json[] default null, p_child_at timestamptz[] default null,
  p_receivers uuid[] default null, p_message_ids text[] default null, p_messages json[] default null,
  p_stop_ids uuid[] default null, p_stop_nids text[] default null, p_stop_attempts integer[] default null,
  p_run_ids uuid[] default null, p_run_nids text[] default null, p_run_attempts integer[] default null,
  p_works json[] default null, p_projects uuid[] default null, p_lanes text[] default null,
  p_priorities priority[] default null, p_pools text[] default null,
  p_event_types text[] default null, p_event_subjects uuid[] default null, p_event_actors text[] default null,
  p_event_bodies text[] default null,
  out lost uuid[], out known uuid[], out holders uuid[], out lanes text[], out passed integer,
  out cancelled_workers uuid[], out cancelled_runs uuid[], out cancelled_leases integer[],
  out receivers uuid[], out owners uuid[]
) language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_count integer;
  v_sent uuid[];
  v_ended uuid[]; v_ended_bodies text[]; v_permits uuid[];
  v_created uuid[]; v_created_bodies text[]; v_run_gates uuid[];
begin
  select array_agg(u.id) into lost
    from (select * from unnest(p_ids, p_revs, p_epochs) as u (id, rev, epoch)
          union all
          select *, null from unnest(p_seen, p_seen_revs)
          union all
          select n.id, null, null from unnest(p_new_ids) as n (id)) as u
    left join execution e on e.id = u.id
   where e.rev is distinct from u.rev or e.epoch <> u.epoch;
  if p_new_keys is not null then
    select array_agg(u.id), array_agg(e.id) into known, holders
      from unnest(p_new_ids, p_new_keys) as u (id, key)
      join execution e on e.key = u.key and e.id <> u.id;
  end if;
  if lost is not null or known is not null then
    return;
  end if;
  if p_ids is not null then
    update execution e
       set rev = e.rev + u.steps, commit_id = p_commit, status = u.status, calls = u.calls, tasks = u.tasks, updated_at = p_at,
           epoch = case when e.owner = p_member then e.epoch else e.epoch + 1 end, owner = p_member,
           ended_at = case when u.status > 2 then p_at end
      from unnest(p_ids, p_revs, p_epochs, p_steps, p_statuses, p_calls, p_tasks)
           as u (id, rev, epoch, steps, status, calls, tasks)
     where e.id = u.id and e.rev = u.rev and e.epoch = coalesce(u.epoch, e.epoch);
    get diagnostics v_count = row_count;
    if v_count < cardinality(p_ids) then
      raise exception 'another conductor has committed meanwhile' using errcode = 'serialization_failure';
    end if;
  end if;
  if p_new_ids is not null then
    insert into execution (id, rev, commit_id, owner, status, calls, tasks, flow_id, version, key, depth, format,
                           created_at, updated_at, ended_at)
    select u.id, u.steps, p_commit, p_member, u.status, u.calls, u.tasks, u.flow_id, u.version, u.key, coalesce(u.depth, 0),
           p_format, p_at, p_at, case when u.status > 2 then p_at end
      from unnest(p_new_ids, p_new_steps, p_new_statuses, p_new_calls, p_new_tasks, p_new_flows, p_new_versions, p_new_keys,
                  p_new_depths)
           as u (id, steps, status, calls, tasks, flow_id, version, key, depth)
    on conflict do nothing;
    get diagnostics v_count = row_count;
    if v_count < cardinality(p_new_ids) then
      raise exception 'another conductor has launched meanwhile' using errcode = 'serialization_failure';
    end if;
  end if;
  if p_entries is not null then
    insert into commit (execution_id, rev, commit_id, member, at, actor, entry)
    select u.id, u.rev, p_commit, p_member, p_at, u.actor, u.entry
      from unnest(p_commit_ids, p_commit_revs, p_actors, p_entries) as u (id, rev, actor, entry);
  end if;
  if p_snapshots is not null then
    insert into snapshot (execution_id, rev, state)
    select * from unnest(p_snapshot_ids, p_snapshot_revs, p_snapshots)
    on conflict (execution_id) do update set rev = excluded.rev, state = excluded.state;
  end if;
  if p_documents is not null then
    insert into execution_document (execution_id, rev, document)
    select * from unnest(p_document_ids, p_document_revs, p_documents);
    update execution set own_document = true where id = any (p_document_ids);
  end if;
  if p_label_ids is not null then
    insert into label (execution_id, name, value)
    select * from unnest(p_label_ids, p_label_names, p_label_values)
    on conflict do nothing;
  end if;
  if p_cleared is not null then
    delete from timer t using unnest(p_cleared_ids, p_cleared) as u (id, name) where t.execution_id = u.id and t.name = u.name;
  end if;
  if p_timers is not null then
    insert into timer (execution_id, name, generation, due_at)
    select * from unnest(p_timer_ids, p_timers, p_generations, p_dues)
    on conflict (execution_id, name) do update set generation = excluded.generation, due_at = excluded.due_at;
  end if;
  if p_untracked is not null then
    delete from tracker t using unnest(p_untracked_ids, p_untracked) as u (id, name)
     where t.execution_id = u.id and t.name = u.name;
  end if;
  if p_trackers is not null then
    insert into tracker (execution_id, name, kind, topic)
    select u.id, u.name, 'function', u.topic from unnest(p_tracker_ids, p_trackers, p_topics) as u (id, name, topic)
    on conflict (execution_id, name) do update set topic = excluded.topic;
  end if;
  if p_done_nids is not null then
    -- kept with its execution, so that a second answer is told that the task has ended
    update workitem w set ended_at = p_at
      from unnest(p_done_ids, p_done_nids, p_done_attempts) as u (id, nid, attempt)
     where w.execution_id = u.id and w.nid = u.nid and w.attempt = u.attempt and w.ended_at is null;
  end if;
  if p_item_ids is not null then
    insert into workitem (id, execution_id, nid, attempt, name, title, assignee, team, form, input, due_at, created_at)
    select u.*, p_at
      from unnest(p_item_ids, p_item_executions, p_item_nids, p_item_attempts, p_item_names, p_item_titles, p_assignees,
                  p_teams, p_forms, p_inputs, p_item_dues) as u
    on conflict do nothing;
  end if;
  if p_stop_nids is not null then
    select s.workers, s.runs, s.leases, s.cancelled, s.bodies, s.permits, s.answered
      into cancelled_workers, cancelled_runs, cancelled_leases, v_ended, v_ended_bodies, v_permits, v_sent
      from stop_node_runs(p_stop_ids, p_stop_nids, p_stop_attempts, p_at) s;
  end if;
  if p_works is not null then
    select q.lanes, q.gates, q.created, q.bodies into lanes, v_run_gates, v_created, v_created_bodies
      from queue_node_runs(
             p_run_ids, p_run_nids, p_run_attempts, p_works, p_projects, p_lanes, p_priorities, p_pools, p_at) q;
  end if;
  if v_permits is not null or v_run_gates is not null then
    select g.passed, v_ended || g.ended, v_ended_bodies || g.bodies into passed, v_ended, v_ended_bodies
      from work_gates(v_run_gates, v_permits, null, null, p_at) g;
  end if;
  if p_taken is not null then
    delete from inbox i using unnest(p_taken_ids, p_taken) as u (id, message)
     where i.execution_id = u.id and i.id = u.message;
  end if;
  if p_child_ids is not null then
    v_sent := v_sent || launch_children(
      p_child_ids, p_child_flows, p_child_parents, p_child_nids, p_child_attempts, p_child_detached, p_child_depths,
      p_child_bodies, p_child_at, p_format, p_at);
  end if;
  if p_messages is not null then
    v_sent := v_sent || send_to_executions(p_receivers, p_message_ids, p_messages, p_at);
  end if;
  if v_sent is not null then
    select array_agg(e.id), array_agg(e.owner) into receivers, owners from execution e where e.id = any (v_sent);
  end if;
  if p_event_types is not null then
    perform append_execution_events(p_event_types, p_event_subjects, p_event_actors, p_event_bodies, p_at);
  end if;
  if v_ended is not null or v_created is not null then
    perform append_run_events(
      v_ended, v_ended_bodies, v_created, array_fill(null::uuid, array[coalesce(cardinality(v_created), 0)]), v_created_bodies,
      null, p_at);
  end if;
end $$;
