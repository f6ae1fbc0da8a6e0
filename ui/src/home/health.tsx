/** The health of the database, the schedulers and the workers, with what is wrong. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useAccess } from '../tenants/access.tsx';
import { sentenceWords } from '../tenants/standing.ts';
import type { TenantWhy } from '../tenants/use-tenants.ts';
import { formatBytes } from '../time/format.ts';
import type { Overview } from './use-home.ts';

type Facts = Overview['health'];

export function Health({ health: { database, schedulers, workers } }: { readonly health: Facts }) {
  const { why } = useAccess();
  const fault = why?.reason_code === 'database' ? why.summary.replace(/^will run: /, '') : undefined;
  return (
    <section className="home-list" aria-labelledby="health">
      <header>
        <h2 id="health">Health</h2>
      </header>
      <ul>
        <Line name="Database" isWell={database.latency_ms < 250 && fault === undefined}>
          {fault === undefined ? null : `${sentenceWords(fault)}; `}answers in{' '}
          {database.latency_ms < 10 ? database.latency_ms.toFixed(1) : Math.round(database.latency_ms)} ms,{' '}
          {formatBytes(database.size_bytes)}
        </Line>
        <Line name={<Link href="/schedulers">Scheduler</Link>} isWell={schedulers.up > 0 && isRunning(why)}>
          {schedulers.up > 0
            ? `up, ${schedulers.queued_triggers.toLocaleString('en')} triggers scheduled`
            : 'none is up, so no trigger fires'}
          {isRunning(why) ? null : `; the tenant ${sentenceWords(why?.summary ?? '')}`}
        </Line>
        <Line name={<Link href="/workers">Workers</Link>} isWell={workers.up > 0}>
          {workers.up > 0
            ? `${workers.up} up, ${workers.taken} of ${workers.places} places taken`
            : 'none is up, so no task runs'}
          {workers.gone > 0 ? `, ${workers.gone} silent` : ''}
        </Line>
      </ul>
    </section>
  );
}

/** Whether the tenant runs without a fault. An unknown tenant state counts as running. */
function isRunning(why: TenantWhy | undefined): boolean {
  return why === undefined || why.summary === 'runs';
}

interface LineProps {
  readonly name: ReactNode;
  readonly isWell: boolean;
  readonly children: ReactNode;
}

function Line({ name, isWell, children }: LineProps) {
  return (
    <li data-bad={isWell ? undefined : ''}>
      <span className="health-mark" data-well={isWell ? '' : undefined}>
        <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d={isWell ? 'm3 8.6 3.4 3.4L13 4.5' : 'M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01'} />
        </svg>
        <span className="unseen">{isWell ? 'healthy' : 'unhealthy'}</span>
      </span>
      <span className="home-what">
        <strong>{name}</strong> <span className="muted">{children}</span>
      </span>
    </li>
  );
}
