/** The head of an execution's page: its flow, status and actions, its incidents, and its facts. */
import { Link } from 'wouter';
import { flowHref } from '../flows/use-flows.ts';
import { Fact, Facts } from '../kit/facts.tsx';
import { useMayOperate } from '../session/session.ts';
import { Age, Span } from '../time/times.tsx';
import { ExecutionActions } from './actions/execution-actions.tsx';
import { nameOf } from './execution-name.ts';
import { Incidents } from './incidents.tsx';
import { Labels } from './labels.tsx';
import { Status } from './status.tsx';
import { type Execution, hasEnded } from './use-executions.ts';

interface Props {
  readonly execution: Execution;
  /** An earlier revision is shown below. */
  readonly isPast: boolean;
}

export function ExecutionHead({ execution, isPast }: Props) {
  const { flow, version, status, error } = execution;
  const mayOperate = useMayOperate();
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/flows">Flows</Link>
        <span aria-hidden="true">/</span>
        <Link href={flowHref(flow)}>{flow}</Link>
        {execution.parent === null ? null : (
          <>
            <span aria-hidden="true">/</span>
            <Link href={stepHref(execution.parent)}>called by {execution.parent.execution.slice(-8)}</Link>
          </>
        )}
      </nav>
      <header className="page-head">
        <h1>{nameOf(execution)}</h1>
        <span role="status">
          <Status status={status} />
        </span>
        <Link href={flowHref(flow, `/versions?from=${version - 1}&to=${version}`)} className="tag plain">
          version {version}
        </Link>
        {execution.own_document ? (
          <span className="tag" title="A step was replaced: it follows a document of its own">
            patched
          </span>
        ) : null}
        {mayOperate ? <ExecutionActions execution={execution} /> : null}
      </header>
      {error === null || status !== 'failed' ? null : <Failed execution={execution.id} error={error} />}
      {isPast ? null : <Incidents execution={execution} />}
      <ExecutionFacts execution={execution} />
    </>
  );
}

function stepHref({ execution, node }: { readonly execution: string; readonly node: string }): string {
  return `/executions/${execution}?node=${encodeURIComponent(node)}`;
}

interface FailedProps {
  readonly execution: string;
  readonly error: NonNullable<Execution['error']>;
}

function Failed({ error: { code, message } }: FailedProps) {
  return (
    <p className="execution-failure">
      <strong>{code}</strong> {message === code ? '' : message}
    </p>
  );
}

function ExecutionFacts({ execution }: Pick<Props, 'execution'>) {
  const {
    id,
    key,
    rev,
    labels,
    owner,
    early,
    is_busy: isBusy,
    created_at: createdAt,
    updated_at: updatedAt,
    ended_at: endedAt,
  } = execution;
  return (
    <Facts>
      <Fact term="Started">
        <Age at={createdAt} />
      </Fact>
      {hasEnded(execution) ? (
        <Fact term="Took">
          <Span from={createdAt} to={endedAt ?? updatedAt} />
        </Fact>
      ) : (
        <Fact term="Changed">
          <Age at={updatedAt} />
        </Fact>
      )}
      <Fact term="Revision">{rev.toLocaleString('en')}</Fact>
      {key === null ? null : (
        <Fact term="Key">
          <code>{key}</code>
        </Fact>
      )}
      {Object.keys(labels).length === 0 ? null : (
        <Fact term="Labels">
          <Labels labels={labels} />
        </Fact>
      )}
      {early.total === 0 ? null : (
        <Fact term="Early signals">
          {early.total.toLocaleString('en')}: {early.names.slice(0, 3).join(', ')}
        </Fact>
      )}
      {owner?.alive === false && isBusy ? <Fact term="Conductor">gone; another one takes over</Fact> : null}
      <Fact term="Called">
        <Link href={`/executions?parent=${id}`}>executions</Link>
      </Fact>
      <Fact term="Execution">
        <code>{id}</code>
      </Fact>
    </Facts>
  );
}
