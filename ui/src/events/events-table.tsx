/** Events, newest first, each in one line. */
import { memo, useMemo } from 'react';
import { Link } from 'wouter';
import { useJobs } from '../jobs/use-jobs.ts';
import { isStateName, State } from '../kit/state.tsx';
import { type LiveEvent, textOf } from '../live/event.ts';
import { formatInstant } from '../time/format.ts';

/** Where the subject of an event has a page: topic → address. */
const pages: Readonly<Record<string, string>> = { millrace_runs: '/runs', millrace_jobs: '/jobs' };

export function EventsTable({ events }: { readonly events: readonly LiveEvent[] }) {
  const { data } = useJobs();
  const names = useMemo(() => new Map(data?.jobs.map((job) => [job.id, `${job.project}/${job.name}`])), [data]);
  return (
    <table className="table events-table">
      <thead>
        <tr>
          <th scope="col">At</th>
          <th scope="col">Event</th>
          <th scope="col">Subject</th>
          <th scope="col" className="wide">
            Details
          </th>
          <th scope="col" className="wide">
            By
          </th>
          <th scope="col" className="wide number">
            Number
          </th>
        </tr>
      </thead>
      <tbody>
        {events.map((event) => (
          <Row key={event.seq} event={event} job={names.get(jobIdOf(event))} />
        ))}
      </tbody>
    </table>
  );
}

function jobIdOf(event: LiveEvent): string {
  return (event.topic === 'millrace_jobs' ? event.subject : textOf(event, 'job')) ?? '';
}

interface RowProps {
  readonly event: LiveEvent;
  readonly job: string | undefined;
}

const Row = memo(function Row({ event, job }: RowProps) {
  const state = textOf(event, 'state');
  return (
    <tr>
      <td>
        <time dateTime={event.at}>{new Date(event.at).toLocaleTimeString(undefined, { hour12: false })}</time>
      </td>
      <th scope="row">
        <span className="event-type">{event.type}</span> {isStateName(state) ? <State state={state} /> : null}
      </th>
      <td>
        <Subject event={event} job={job} />
      </td>
      <td className="wide event-body" title={JSON.stringify(event.body, null, 2)}>
        {summaryOf(event)}
      </td>
      <td className="wide muted">{event.actor ?? '–'}</td>
      <td className="wide number muted">{event.seq}</td>
    </tr>
  );
});

function Subject({ event, job }: RowProps) {
  if (event.subject === null) return <span className="muted">–</span>;
  const page = pages[event.topic];
  const label = job ?? event.subject.slice(-12);
  return page === undefined ? <code>{label}</code> : <Link href={`${page}/${event.subject}`}>{label}</Link>;
}

/** The body's plain fields, without the ids and what the line says already. */
function summaryOf(event: LiveEvent): string {
  return Object.entries(event.body)
    .filter(
      ([name, value]) =>
        !['job', 'task', 'state'].includes(name) && value !== null && value !== false && typeof value !== 'object',
    )
    .map(([name, value]) => `${name} ${name === 'instant' ? formatInstant(String(value)) : String(value)}`)
    .join(' · ');
}
