/** Lists of what needs attention: failing tasks, incidents of flows, late runs and triggers, and what fires next. Each line links to a page. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Status } from '../executions/status.tsx';
import { flowHref } from '../flows/use-flows.ts';
import { State } from '../kit/state.tsx';
import { Age, Due, Instant } from '../time/times.tsx';
import type { Overview } from './use-home.ts';

interface ListProps {
  readonly title: string;
  readonly id: string;
  /** Shown if the list is empty. */
  readonly none: string;
  readonly more?: ReactNode;
  readonly children: readonly ReactNode[];
}

function List({ title, id, none, more, children }: ListProps) {
  return (
    <section className="home-list" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {children.length === 0 ? null : more}
      </header>
      {children.length === 0 ? <p className="muted">{none}</p> : <ul>{children}</ul>}
    </section>
  );
}

interface JobName {
  readonly id: string;
  readonly name: string;
  readonly project: string;
}

function Of({ job }: { readonly job: JobName }) {
  return (
    <Link href={`/jobs/${job.id}`} className="home-job">
      {job.project}/{job.name}
    </Link>
  );
}

export function Failing({ items }: { readonly items: Overview['failing'] }) {
  const more = <Link href="/jobs?show=failing">All failing jobs</Link>;
  return (
    <List title="Failing" id="failing" none="Nothing is failing." more={more}>
      {items.map(({ run, state, job, task, finished_at, reason }) => (
        <li key={run}>
          <State state={state} />
          <span className="home-what">
            <Link href={`/runs/${run}`}>{task.name}</Link> <Of job={job} />
            {reason === null ? null : <span className="home-reason">{reason}</span>}
          </span>
          <span className="home-when">
            <Age at={finished_at} />
          </span>
        </li>
      ))}
    </List>
  );
}

/** Executions of flows that wait for somebody to retry or skip a step. Nothing is shown if there are none. */
export function Incidents({ incidents: { total, items } }: Pick<Overview, 'incidents'>) {
  if (total === 0) return null;
  const more = <Link href="/executions?status=incident">All incidents</Link>;
  return (
    <List title="Incidents of flows" id="incidents" none="" more={more}>
      {items.map(({ execution, flow, key, node, code, since }) => (
        <li key={execution}>
          <Status status="incident" />
          <span className="home-what">
            <Link href={`/executions/${execution}${node === null ? '' : `?node=${encodeURIComponent(node)}`}`}>
              {key ?? execution.slice(-8)}
            </Link>{' '}
            <Link href={flowHref(flow)} className="home-job">
              {flow}
            </Link>
            {code === null ? null : <span className="home-reason">{code}</span>}
          </span>
          <span className="home-when">
            <Age at={since} />
          </span>
        </li>
      ))}
    </List>
  );
}

export function Late({ items }: { readonly items: Overview['late'] }) {
  return (
    <List title="Late" id="late" none="Nothing is late.">
      {items.map(({ kind, id, name, job, since }) => (
        <li key={`${kind} ${id}`}>
          <span className="tag">{kind === 'run' ? 'not started' : 'not fired'}</span>
          <span className="home-what">
            <Link href={kind === 'run' ? `/runs/${id}?view=why` : `/jobs/${job.id}/triggers?why=${id}`}>{name}</Link>{' '}
            <Of job={job} />
          </span>
          <span className="home-when">
            since <Age at={since} />
          </span>
        </li>
      ))}
    </List>
  );
}

export function Next({ items }: { readonly items: Overview['next'] }) {
  return (
    <List title="Next" id="next" none="No trigger is scheduled.">
      {items.map(({ trigger, job, instant, due }) => (
        <li key={trigger.id}>
          <span className="home-what">
            <Of job={job} /> <span className="muted">{trigger.name}</span>
          </span>
          <span className="home-when">
            <Instant at={instant} /> · <Due at={due} />
          </span>
        </li>
      ))}
    </List>
  );
}
