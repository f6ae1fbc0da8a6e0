-- Gives an errand to each active reader that has events queued and no errand, and to each running replay without one. There should
-- be none: this finds those whose errand was removed by hand, or by a restore. Returns how many there were.
--
-- Locks: reader, replay, errand by key.
create or replace function mend_errands() returns integer language plpgsql as $$
declare
  v_count integer;
begin
  with readers as (
    select deliver_key(r.subscriber_id, r.strand) as key
      from reader r
      join subscriber s on s.id = r.subscriber_id
     where r.queued > 0 and s.state = 'active' and s.kind = 'http'
       and not exists (
         select from errand e where e.queue = 'main' and e.key = deliver_key(r.subscriber_id, r.strand))
       for update of r skip locked
  ),
  replays as (
    select '["replay",["' || p.id::text || '"]]' as key
      from replay p
     where p.state = 'running'
       and not exists (select from errand e where e.queue = 'main' and e.key = '["replay",["' || p.id::text || '"]]')
       for update of p skip locked
  )
  insert into errand (queue, key)
  select 'main', m.key
    from (select key from readers union all select key from replays) as m
   order by m.key
  on conflict do nothing;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
