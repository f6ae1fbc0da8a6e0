-- The limit by bytes of the bus log.

-- A partition of this size is closed: the next event gets the first number of the next partition. Housekeeping keeps it at a tenth of
-- MILLRACE_BUS_MAX_BYTES, so that the limit drops the log piece by piece.
alter table bus_state add column piece_bytes bigint not null default 1073741824 check (piece_bytes > 0);

-- when a consumer got the batch that it holds
alter table reader add column leased_at timestamptz;
