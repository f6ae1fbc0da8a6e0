-- Records the tenant's version at the end of a migration by hand. After the commit, the engine of this version serves the
-- tenant. Raises an exception for a version older than the recorded one, because an older engine does not know what a newer
-- one wrote.
create or replace function finish_migration(p_version text) returns void language plpgsql set search_path from current as $$
declare
  v_recorded text := (select version from installation);
begin
  if not holds_drain() then
    raise exception 'this transaction has not called millrace.begin_migration()';
  end if;
  if version_order(p_version) is null then
    raise exception '% is not a version, such as 1.2.3', coalesce(p_version, 'null');
  end if;
  if version_order(p_version) collate "C" < version_order(v_recorded) collate "C" then
    raise exception 'the tenant is at %; % is older, and there is no way back', v_recorded, p_version
      using hint = format('If no engine was ever of %s, it was recorded by mistake: update millrace.installation instead.',
                          v_recorded);
  end if;
  update installation set version = p_version, updated_at = clock_timestamp();
end $$;
