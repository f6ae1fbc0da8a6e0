/** A list of executions. On a phone, the columns at the right are hidden. */
import { Link } from 'wouter';
import { flowHref } from '../flows/use-flows.ts';
import { Age, Span } from '../time/times.tsx';
import { nameOf } from './execution-name.ts';
import './executions.css';
import { Labels } from './labels.tsx';
import { Status } from './status.tsx';
import { hasEnded, type ListedExecution } from './use-executions.ts';

interface Props {
  readonly executions: readonly ListedExecution[];
  readonly isOneFlow?: boolean;
}

export function ExecutionsTable({ executions, isOneFlow = false }: Props) {
  return (
    <table className="table executions-table">
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Execution</th>
          {isOneFlow ? null : <th scope="col">Flow</th>}
          <th scope="col" className="wide">
            Labels
          </th>
          <th scope="col">Started</th>
          <th scope="col" className="wide">
            Changed
          </th>
          <th scope="col" className="number">
            Took
          </th>
        </tr>
      </thead>
      <tbody>
        {executions.map((execution) => (
          <Row key={execution.id} execution={execution} isOneFlow={isOneFlow} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ execution, isOneFlow }: { readonly execution: ListedExecution; readonly isOneFlow: boolean }) {
  const {
    id,
    flow,
    version,
    status,
    labels,
    created_at: createdAt,
    updated_at: updatedAt,
    ended_at: endedAt,
  } = execution;
  return (
    <tr>
      <td>
        <Status status={status} />
      </td>
      <th scope="row">
        <Link href={`/executions/${id}`} title={id}>
          {nameOf(execution)}
        </Link>
      </th>
      {isOneFlow ? null : (
        <td>
          <Link href={flowHref(flow)} className="quiet-link">
            {flow}
          </Link>{' '}
          <span className="muted wide">v{version}</span>
        </td>
      )}
      <td className="wide">
        <Labels labels={labels} />
      </td>
      <td className="muted">
        <Age at={createdAt} />
      </td>
      <td className="wide muted">
        <Age at={updatedAt} />
      </td>
      <td className="number">{hasEnded(execution) ? <Span from={createdAt} to={endedAt ?? updatedAt} /> : '–'}</td>
    </tr>
  );
}
