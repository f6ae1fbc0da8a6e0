-- Ids of batches. Moving a subscriber back puts its present terms in force at earlier events as well. Their batches need ids that no
-- other terms ever had.

-- the terms apply to events after this number, wherever the subscriber was moved later; version: no two terms of a subscriber share it
alter table subscription add column origin_seq bigint, add column version bigint;
update subscription set origin_seq = from_seq, version = from_seq;
alter table subscription alter column origin_seq set not null, alter column version set not null;
