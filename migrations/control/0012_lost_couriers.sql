-- When the process of a courier was found to be gone, by `up` or by another courier of its machine. Its errands return at once then.
alter table courier add column lost_at timestamptz;
