/** One run: its state, its times, and the view that the address names (`?view=`). */
import { type ComponentType, useRef } from 'react';
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { State } from '../kit/state.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { AttemptsView } from './attempts-view.tsx';
import { EnvironmentView } from './environment-view.tsx';
import { HistoryView } from './history-view.tsx';
import { LogView } from './log/log-view.tsx';
import { RunActions } from './run-actions.tsx';
import { RunCrumbs } from './run-crumbs.tsx';
import { RunFacts } from './run-facts.tsx';
import './runs.css';
import { sentence } from '../explain/sentence.ts';
import { type RunDetail, useRun } from './use-runs.ts';
import { WhyView } from './why-view.tsx';

interface View {
  readonly name: string;
  readonly label: string;
  readonly Body: ComponentType<{ readonly run: RunDetail }>;
}

const views: readonly View[] = [
  { name: 'log', label: 'Log', Body: ({ run }) => <LogView run={run.id} hasEnded={run.finished_at !== null} /> },
  { name: 'why', label: 'Why', Body: WhyView },
  { name: 'history', label: 'History', Body: HistoryView },
  { name: 'attempts', label: 'Attempts', Body: AttemptsView },
  { name: 'environment', label: 'Environment', Body: EnvironmentView },
];

export default function RunPage({ id }: { readonly id: string }) {
  const run = useRun(id);
  const heading = useRef<HTMLHeadingElement>(null);
  const name = run.data?.task?.name ?? run.data?.node?.name ?? `Run ${id.slice(0, 8)}`;
  useTitle(run.data === undefined ? undefined : `${name} · ${run.data.state}`);
  return (
    <Answer of={run} what="Reading the run">
      {(data) => (
        <>
          <RunCrumbs run={data} />
          <header className="page-head">
            <h1 ref={heading} tabIndex={-1}>
              {name}
            </h1>
            <span role="status">
              <State state={data.state} />
            </span>
            <RunActions run={data} heading={heading} />
          </header>
          {data.reason === null ? null : <p className="lede">{sentence(data.reason)}</p>}
          <RunFacts run={data} />
          <RunView run={data} />
        </>
      )}
    </Answer>
  );
}

/** For a run that has not begun, the explanation matters more than a log that cannot exist. */
function RunView({ run }: { readonly run: RunDetail }) {
  const [view] = useUrlState('view', run.started_at === null ? 'why' : 'log');
  const shown = views.find(({ name }) => name === view);
  if (shown === undefined) return <NotFound />;
  return (
    <>
      <nav className="tabs" aria-label="Views of this run">
        {views.map(({ name, label }) => (
          <Link key={name} href={`/runs/${run.id}?view=${name}`} aria-current={name === view ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <shown.Body run={run} />
    </>
  );
}
