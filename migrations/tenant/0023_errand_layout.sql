-- Errands are held in groups. Taking 500 errands updated 500 rows and their index entries; now it writes one row that names them.
--
-- An errand gets a new number (id) each time it becomes ready, so a number stands for one turn of waiting and being held. An errand is
-- pending while it is ready and a hold names its number. Pending errands stay with their workers.

create sequence errand_lease_seq as integer cycle;

create table errand_hold (
  -- a write about an errand names the lease under which it is held
  lease integer primary key default nextval('errand_lease_seq'),
  queue text not null,
  worker uuid not null,
  taken_at timestamptz not null,
  -- the numbers of the errands. Those that have ended, or were given another number, are still named
  ids int8multirange not null,
  last_id bigint not null
);

create index errand_hold_last on errand_hold (queue, last_id);
create index errand_hold_worker on errand_hold (worker);

insert into errand_hold (queue, worker, taken_at, ids, last_id)
select queue, worker, coalesce(max(taken_at), '-infinity'), range_agg(int8range(id, id, '[]')), max(id)
  from errand
 where state = 'p'
 group by queue, worker;

drop index errand_held;
alter table errand
  drop constraint errand_state_check,
  drop constraint errand_check,
  drop constraint errand_check1,
  drop constraint errand_check2;
update errand set state = 'r' where state = 'p';
alter table errand
  drop column worker,
  drop column lease,
  drop column taken_at,
  -- s: scheduled, r: ready or pending, x: set aside after too many losses
  add constraint errand_state_check check (state in ('s', 'r', 'x')),
  add constraint errand_run_at_check check ((run_at is not null) = (state = 's')),
  -- it was pushed while it was ready or pending: its ack makes it ready instead of removing it, unless it was taken after the push
  add constraint errand_again_check check (not again or state = 'r'),
  -- a transaction has its number before it draws one for an errand, so it is known when none below a number can appear any more
  alter column id set default case when pg_current_xact_id() is null then 0 else nextval('errand_seq') end,
  set (fillfactor = 90);

-- what the limit by bytes has dropped for a subscriber, among all its dead letters
create index dead_letter_dropped on dead_letter (subscriber_id, first_seq) where code = 'dropped';
