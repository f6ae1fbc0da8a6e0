-- Finds full tokens of tasks whose threshold was lowered recently: a concurrent stage may have counted by the old threshold.
-- release_tokens releases them.
--
-- Locks: as hold_full_tokens, then lowered.
create or replace function sweep_lowered(p_at timestamptz) returns void language plpgsql as $$
begin
  if exists (select 1 from lowered) then
    perform hold_full_tokens(array(select task_id from lowered));
    delete from lowered where until < p_at;
  end if;
end $$;
