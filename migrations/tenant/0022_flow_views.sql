-- What lists of flows and executions need to be read in pages.

-- of the newest version, at most 1,000 characters: a list of flows reads no documents
alter table flow add column description text;

-- the children of an execution, in order
drop index execution_parent;
create index execution_parent on execution (parent, id) where parent is not null;
