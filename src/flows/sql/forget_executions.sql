-- Deletes executions that have ended, with everything that is about them: at most p_rows commits in a call. An execution goes last, after
-- its last commit, so that a call that is killed leaves nothing that nobody would find. `more`: call again for the same executions.
--
-- Runs of their nodes are deleted by age, like other runs, and keep what they were about until then.
--
-- Locks: execution by id with skip locked.
create or replace function forget_executions(
  p_executions uuid[], p_rows integer, out executions integer, out rows integer, out more boolean
) language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  v_ids uuid[];
begin
  executions := 0; more := false;
  v_ids := array(
    select e.id from execution e where e.id = any (p_executions) and e.status > 2 order by e.id for update skip locked);
  delete from commit
   where ctid = any (array(
     select c.ctid
       from unnest(v_ids) as u (id)
      cross join lateral (select c.ctid from commit c where c.execution_id = u.id limit p_rows) as c
      limit p_rows));
  get diagnostics rows = row_count;
  if rows = p_rows then
    more := true;
    return;
  end if;
  delete from snapshot where execution_id = any (v_ids);
  delete from execution_document where execution_id = any (v_ids);
  delete from label where execution_id = any (v_ids);
  delete from workitem where execution_id = any (v_ids);
  delete from inbox where execution_id = any (v_ids);
  delete from timer where execution_id = any (v_ids);
  delete from tracker where execution_id = any (v_ids);
  delete from execution where id = any (v_ids);
  get diagnostics executions = row_count;
  rows := rows + executions;
end $$;
