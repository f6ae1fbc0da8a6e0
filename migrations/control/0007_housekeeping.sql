-- Housekeeping runs in the slot of its tenant's scheduler and asks for none.
delete from slot where kind = 'housekeeping';
alter table slot drop column lent;
alter table slot drop constraint slot_kind_check;
alter table slot add constraint slot_kind_check check (kind in ('launcher', 'scheduler'));
alter table launch drop column housekept_at;
