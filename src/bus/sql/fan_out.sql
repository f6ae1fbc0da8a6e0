-- Counts the events of one page for their readers, and gives each active reader an errand.
--
-- It does nothing unless the events up to p_from, and no others, were counted before, and p_revision is the current state of the
-- subscriptions. So every event is counted once, by the subscriptions that are in force at its number.
--
-- The errand of a reader with an open batch is scheduled for p_due. It becomes ready at once if the batch is full or p_due has
-- come, unless it waits for a retry. Up to p_room errands go to the calling worker at once. It returns the errands that the worker
-- now holds, and the next time at which one of the others is due.
--
-- Locks: bus_state, reader by (subscriber, strand), errand by key. It waits for no acquire: the hold and its errands appear together.
create or replace function fan_out(
  p_from bigint, p_to bigint, p_revision bigint,
  p_subscribers uuid[], p_strands smallint[], p_counts integer[], p_first timestamptz[], p_due timestamptz[], p_most integer[],
  p_full boolean[], p_worker uuid, p_room integer, p_at timestamptz,
  out moved boolean, out keys text[], out leases integer[], out next_due timestamptz
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  update bus_state set fanned = p_to where one and fanned = p_from and revision = p_revision;
  moved := found;
  if not moved then
    return;
  end if;
  if cardinality(p_subscribers) = 0 then
    return;
  end if;
  perform
     from reader r
     join unnest(p_subscribers, p_strands) as c (subscriber_id, strand) using (subscriber_id, strand)
    order by r.subscriber_id, r.strand
      for update of r;
  with counted as (
    update reader r
       set queued = r.queued + c.n,
           oldest_at = case when r.queued = 0 then c.first_at else coalesce(r.oldest_at, c.first_at) end
      from unnest(p_subscribers, p_strands, p_counts, p_first) as c (subscriber_id, strand, n, first_at)
     where r.subscriber_id = c.subscriber_id and r.strand = c.strand
    returning r.subscriber_id, r.strand, r.queued
  ),
  wanted as (
    select deliver_key(r.subscriber_id, r.strand) as key,
           c.is_full or r.queued >= c.most or c.due <= p_at as is_due, c.due
      from counted r
      join unnest(p_subscribers, p_strands, p_due, p_most, p_full) as c (subscriber_id, strand, due, most, is_full)
        using (subscriber_id, strand)
      join subscriber s on s.id = r.subscriber_id
     where s.state = 'active' and s.kind = 'http'
  ),
  placed as (
    select w.key, w.due,
           case when not w.is_due then 's' when row_number() over (partition by w.is_due order by w.key) <= p_room then 'p' else 'r' end
             as state
      from wanted w
     order by w.key
  ),
  given as (
    insert into errand as e (queue, key, state, run_at)
    select 'main', p.key, case p.state when 's' then 's' else 'r' end::"char", case when p.state = 's' then p.due end
      from placed p
     order by p.key
    on conflict (queue, key) do update
       set id = excluded.id, state = excluded.state, run_at = null
     where e.state = 's' and e.reason is null and excluded.state <> 's'
    returning e.key, e.id, e.run_at
  ),
  taken as (
    select g.key, g.id from given g join placed p using (key) where p.state = 'p'
  ),
  held as (
    insert into errand_hold as h (queue, worker, taken_at, ids, last_id)
    select 'main', p_worker, p_at, range_agg(int8range(t.id, t.id, '[]')), max(t.id) from taken t having count(*) > 0
    returning h.lease
  )
  select array_agg(t.key), array_agg(h.lease), (select min(g.run_at) from given g)
    into keys, leases, next_due
    from held h cross join taken t;
end $$;
