-- Worker keys may be bound to a tenant, and a worker's id belongs to the key that it was first used with.

alter table key drop constraint key_check;
-- root and conductor serve the whole installation; a worker key serves all tenants or one; every other role belongs to one
alter table key add constraint key_tenant check (
  case
    when role in ('root', 'conductor') then tenant_id is null
    when role = 'worker' then true
    else tenant_id is not null
  end);

-- All zeros: the worker within `up`, which needs no key. Null: it was noted before there was this column, or is Waterwheel's.
alter table worker add column key_id uuid;
