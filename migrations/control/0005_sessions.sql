-- Every session and every sign-in link belongs to a key, and ends with it. A session has an id to end it by.

alter table session
  add column id uuid not null default gen_random_uuid() unique,
  -- with the key itself, or with a one-time link that the key has made
  add column opened_with text not null default 'key' check (opened_with in ('key', 'link'));

alter table sign_in_link add column key_id uuid references key on delete cascade;

-- until now only root keys made links, and nobody noted which: the installation's own key stands for them
update session
   set opened_with = 'link',
       key_id = (select key.id from key where key.created_by = 'installation' and key.revoked_at is null limit 1)
 where key_id is null;
delete from session where key_id is null;
-- a link lives for ten minutes, and `millrace open` makes another
delete from sign_in_link;

alter table session alter column key_id set not null;
alter table sign_in_link alter column key_id set not null;
create index session_key on session (key_id);
