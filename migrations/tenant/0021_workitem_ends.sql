-- Work items stay on record after their end, so that a second answer is told that the task has ended (410) and not that it never
-- existed (404). They go with their execution.

alter table workitem add column ended_at timestamptz;

drop index workitem_assignee;
drop index workitem_team;
create index workitem_assignee on workitem (assignee, id) where assignee is not null and ended_at is null;
create index workitem_team on workitem (team, id) where team is not null and ended_at is null;
create index workitem_open on workitem (id) where ended_at is null;
create index workitem_claimed on workitem (claimed_by, id) where claimed_by is not null and ended_at is null;
