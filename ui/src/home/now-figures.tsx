/** Numbers of current runs, with links to them. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Overview } from './use-home.ts';

export function NowFigures({ overview }: { readonly overview: Overview }) {
  const { running, ready, held, retry, counted_up_to: most, failing, late, incidents } = overview;
  const count = (n: number): string => (n >= most ? `${most.toLocaleString('en')}+` : n.toLocaleString('en'));
  const figures = [
    { label: 'running', value: count(running), to: '/runs?state=running', about: 'a worker runs them now' },
    { label: 'ready', value: count(ready), to: '/runs?state=active', about: 'wait for a free place' },
    { label: 'held', value: count(held), to: '/runs?state=active', about: 'wait for a limit or a pause' },
    { label: 'to be retried', value: count(retry), to: '/runs?state=failed', about: 'failed and will be retried' },
    {
      label: 'late',
      value: more(late),
      to: '#late',
      bad: late.length > 0,
      about: 'should have started or fired by now',
    },
    { label: 'failing', value: more(failing), to: '/jobs?show=failing', bad: failing.length > 0, about: 'tasks' },
    // only where there are some: not every tenant has flows
    ...(incidents.total === 0 ? [] : [incidentsFigure(incidents.total)]),
  ];
  return (
    <ul className="figures now-figures" aria-label="Now">
      {figures.map(({ label, value, to, bad, about }) => (
        <li key={label} data-bad={bad === true ? '' : undefined}>
          <Leading to={to} title={about}>
            <span className="figure">{value}</span> <span className="figure-label">{label}</span>
          </Leading>
        </li>
      ))}
    </ul>
  );
}

interface LeadingProps {
  readonly to: string;
  readonly title: string;
  readonly children: ReactNode;
}

/** A link to another page, or to a place on this one. */
function Leading({ to, title, children }: LeadingProps) {
  if (!to.startsWith('#')) {
    return (
      <Link href={to} title={title}>
        {children}
      </Link>
    );
  }
  return (
    <a href={to} title={title}>
      {children}
    </a>
  );
}

/** The server counts this many. */
const maxIncidents = 100;

function incidentsFigure(total: number) {
  const value = total < maxIncidents ? String(total) : `${maxIncidents}+`;
  const about = 'executions of flows that wait for a repair';
  return { label: total === 1 ? 'incident' : 'incidents', value, to: '/executions?status=incident', bad: true, about };
}

/** The server returns at most this many items per list. */
const maxItems = 10;
function more(items: readonly unknown[]): string {
  return items.length < maxItems ? String(items.length) : `${maxItems}+`;
}
