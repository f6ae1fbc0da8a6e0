/** Which cached answers an event outdates: one row per topic. Topics that no page shows outdate nothing. */
import type { QueryKey } from '@tanstack/react-query';
import { keys } from '../queries.ts';
import { type LiveEvent, textOf } from './event.ts';

const rows: Readonly<Record<string, (event: LiveEvent) => readonly QueryKey[]>> = {
  millrace_projects: () => [keys.jobs],
  millrace_jobs: ({ subject }) => [
    keys.jobs,
    ...(subject === null ? [] : [keys.jobState(subject), keys.jobWritten(subject)]),
  ],
  millrace_runs: (event) => [...(event.subject === null ? [] : [keys.run(event.subject)]), ...jobOf(event)],
  millrace_tokens: (event) => jobOf(event),
};

function jobOf(event: LiveEvent): readonly QueryKey[] {
  const job = textOf(event, 'job');
  return job === undefined ? [] : [keys.jobState(job)];
}

export function touchedBy(event: LiveEvent): readonly QueryKey[] {
  return rows[event.topic]?.(event) ?? [];
}
