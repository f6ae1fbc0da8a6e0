/**
 * One execution: its head, and the view that the address names (`?view=`). The address also has the selected step (`?node=`) and the
 * revision that is shown (`?rev=`); without one, the page is live.
 */
import { type ComponentType, lazy, Suspense } from 'react';
import { Link, useSearchParams } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Loading } from '../kit/loading.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { useTitle } from '../kit/title.ts';
import { withChanges } from '../kit/url-state.ts';
import { DataView } from './data-view.tsx';
import { ExecutionHead } from './execution-head.tsx';
import { nameOf } from './execution-name.ts';
import '../job/versions/versions.css';
import './executions.css';
import { RevisionBar } from './revision-bar.tsx';
import { StepsView } from './steps-view.tsx';
import { type ExecutionViewProps, useExecution, useExecutionAt } from './use-executions.ts';
import { ExecutionWhyView } from './why-view.tsx';

interface View {
  readonly name: string;
  readonly label: string;
  readonly Body: ComponentType<ExecutionViewProps>;
}

const views: readonly View[] = [
  { name: '', label: 'Steps', Body: StepsView },
  { name: 'timeline', label: 'Timeline', Body: lazy(() => import('./timeline/execution-timeline.tsx')) },
  { name: 'history', label: 'History', Body: lazy(() => import('./history/history-view.tsx')) },
  { name: 'data', label: 'Data', Body: DataView },
  { name: 'why', label: 'Why', Body: ExecutionWhyView },
];

/** The revision in the address, if it is another one than the newest. */
function useRevision(newest: number | undefined): number | undefined {
  const [search] = useSearchParams();
  const text = search.get('rev') ?? '';
  const rev = /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  return rev === undefined || newest === undefined || rev >= newest ? undefined : rev;
}

export default function ExecutionPage({ id }: { readonly id: string }) {
  const now = useExecution(id);
  const rev = useRevision(now.data?.rev);
  const then = useExecutionAt(id, rev);
  useTitle(now.data === undefined ? undefined : `${nameOf(now.data)} · ${now.data.status}`);
  if (now.error !== null && now.data === undefined) return <Unread of={now} />;
  return (
    <Answer of={now} what="Reading the execution">
      {(latest) => (
        <>
          <ExecutionHead execution={latest} isPast={rev !== undefined} />
          {rev === undefined ? null : <RevisionBar execution={latest} rev={rev} />}
          <Answer of={rev === undefined ? now : then} what={`Reading revision ${rev}`}>
            {(shown) => <ExecutionView execution={shown} latest={latest} />}
          </Answer>
        </>
      )}
    </Answer>
  );
}

/** Without its head there is still a way on. */
function Unread({ of }: { readonly of: ReturnType<typeof useExecution> }) {
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/flows">Flows</Link>
        <span aria-hidden="true">/</span>
        <Link href="/executions">Executions</Link>
      </nav>
      <Answer of={of} what="Reading the execution">
        {() => null}
      </Answer>
    </>
  );
}

function ExecutionView(props: ExecutionViewProps) {
  const [search] = useSearchParams();
  const view = search.get('view') ?? '';
  const shown = views.find(({ name }) => name === view);
  if (shown === undefined) return <NotFound />;
  const { id } = props.latest;
  return (
    <>
      <nav className="tabs" aria-label="Views of this execution">
        {views.map(({ name, label }) => (
          <Link
            key={name}
            href={`/executions/${id}?${withChanges(search, { view: name, n: '' })}`}
            aria-current={name === view ? 'page' : undefined}
          >
            {label}
          </Link>
        ))}
      </nav>
      <Suspense fallback={<Loading what={`Opening ${shown.label}`} />}>
        <shown.Body {...props} />
      </Suspense>
    </>
  );
}
