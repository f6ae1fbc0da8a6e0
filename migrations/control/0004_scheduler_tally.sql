-- What a tenant's scheduler has done since its host started (src/contract/tally.ts), written with its heartbeat: the host
-- serves no metrics, whoever serves them reads this.
alter table scheduler add column tally jsonb;
