-- Descriptions of flows beside their documents, so that a list of flows reads no documents.

-- of the newest version, at most 1,000 characters
alter table flow add column description text;
