-- Why a worker does not take some kinds of work now, by kind: {"docker": "no answer from the daemon"}.

alter table worker add column unavailable jsonb not null default '{}';
