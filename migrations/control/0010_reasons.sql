-- Reasons as data. `code` and `reason` (its sentence) stay: processes of an older release read and write only these.
-- `why` is the whole reason, {code, cause, data, text}; see src/control/reasons.ts. An older process leaves it as it is, so
-- it counts only where its `text` is the row's `reason`.
--
-- Existing rows have no `why`: they are read as a sentence without a cause until the next change.

alter table launch add column why jsonb;
alter table scheduler add column why jsonb;

-- The launcher leaves a tenant alone whose database takes no connections. So its reason is filled in here, from the
-- sentences of the older releases.
update launch
   set why = jsonb_build_object('code', launch.code, 'cause', former.cause, 'data', '{}'::jsonb, 'text', launch.reason)
  from (values
    ('not_connectable', 'its database is a template', 'template'),
    ('not_connectable', 'its database has a name that no address can mean; rename it', 'unnameable'),
    ('not_connectable', 'its database accepts no connections', 'refuses_connections'),
    ('stopped_by_user', 'stopped by user', 'none'),
    ('starting', 'starting', 'none'),
    ('starting', 'no launcher is active', 'no_launcher'),
    ('stopping', 'stopping', 'none'),
    ('not_installed', 'not installed', 'none'),
    ('gone', 'gone: its database does not exist', 'none')
  ) as former (code, reason, cause)
 where launch.code = former.code and launch.reason = former.reason;
