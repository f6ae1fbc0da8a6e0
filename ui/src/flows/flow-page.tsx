/** One flow: its head, and below it the view that the address names (`/flows/:name/:view`). */
import { type ComponentType, lazy, Suspense } from 'react';
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Loading } from '../kit/loading.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { useTitle } from '../kit/title.ts';
import { DeleteFlowAction } from './delete-flow.tsx';
import { FlowExecutions } from './flow-executions.tsx';
import { FlowStepsView } from './flow-steps-view.tsx';
import '../executions/executions.css';
import { StartFlowAction } from './start-flow.tsx';
import { flowHref, flowNameIn, type FlowViewProps, useFlow } from './use-flows.ts';

interface View {
  readonly name: string;
  readonly label: string;
  readonly Body: ComponentType<FlowViewProps>;
}

const views: readonly View[] = [
  { name: '', label: 'Executions', Body: FlowExecutions },
  { name: 'steps', label: 'Steps', Body: FlowStepsView },
  { name: 'versions', label: 'Versions', Body: lazy(() => import('./flow-versions-view.tsx')) },
  { name: 'definition', label: 'Definition', Body: lazy(() => import('./flow-definition-view.tsx')) },
];

export default function FlowPage({
  name: part,
  view = '',
}: {
  readonly name: string;
  readonly view?: string | undefined;
}) {
  const name = flowNameIn(part);
  const read = useFlow(name);
  const shown = views.find((each) => each.name === view);
  useTitle(shown === undefined ? undefined : `${name} · ${shown.label}`);
  if (shown === undefined) return <NotFound />;
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/flows">Flows</Link>
      </nav>
      <Answer of={read} what="Reading the flow">
        {(flow) => (
          <>
            <FlowHead flow={flow} />
            <nav className="tabs" aria-label="Views of this flow">
              {views.map(({ name: other, label }) => (
                <Link
                  key={other}
                  href={flowHref(name, other === '' ? '' : `/${other}`)}
                  aria-current={other === view ? 'page' : undefined}
                >
                  {label}
                </Link>
              ))}
            </nav>
            <Suspense fallback={<Loading what={`Opening ${shown.label}`} />}>
              <shown.Body flow={flow} />
            </Suspense>
          </>
        )}
      </Answer>
    </>
  );
}

function FlowHead({ flow }: FlowViewProps) {
  return (
    <>
      <header className="page-head">
        <h1>{flow.name}</h1>
        <Link href={flowHref(flow.name, '/versions')} className="tag plain">
          version {flow.version}
        </Link>
        {flow.project === null ? null : <span className="tag">project {flow.project}</span>}
        <div className="page-actions">
          <DeleteFlowAction flow={flow} />
          <StartFlowAction flow={flow} />
        </div>
      </header>
      {flow.description === null ? null : <p className="lede">{flow.description}</p>}
    </>
  );
}
