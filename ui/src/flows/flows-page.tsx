/** All flows: version, executions under way by status, and who changed what last. The address has the search text. */
import { Link } from 'wouter';
import { StatusCount } from '../executions/status.tsx';
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { useMayOperate } from '../session/session.ts';
import { Age } from '../time/times.tsx';
import { FlowsHead } from './flows-head.tsx';
import { flowHref, type ListedFlow, useFlows } from './use-flows.ts';

export default function FlowsPage() {
  useTitle('Flows');
  const flows = useFlows();
  const [question, ask] = useUrlState('q');
  const mayOperate = useMayOperate();
  return (
    <>
      <FlowsHead>
        <SearchField label="Find a flow" value={question} change={ask} />
        {mayOperate ? (
          <Link href="/flows/new" className="button primary">
            New flow
          </Link>
        ) : null}
      </FlowsHead>
      <Answer of={flows} what="Reading flows">
        {(all) => (all.length === 0 ? <NoFlows /> : <Found all={all} question={question} />)}
      </Answer>
    </>
  );
}

function Found({ all, question }: { readonly all: readonly ListedFlow[]; readonly question: string }) {
  const q = question.trim().toLowerCase();
  const shown = all.filter(({ name, description }) =>
    [name, description ?? ''].some((text) => text.toLowerCase().includes(q)),
  );
  if (shown.length === 0) return <Empty title="No flow has that name" />;
  return (
    <table className="table flows-table">
      <thead>
        <tr>
          <th scope="col">Flow</th>
          <th scope="col">Under way</th>
          <th scope="col" className="number">
            Version
          </th>
          <th scope="col">Changed</th>
          <th scope="col" className="wide">
            By
          </th>
        </tr>
      </thead>
      <tbody>
        {shown.map((flow) => (
          <Row key={flow.name} flow={flow} />
        ))}
      </tbody>
    </table>
  );
}

function Row({
  flow: { name, description, version, counts, updated_at: at, updated_by: by },
}: {
  readonly flow: ListedFlow;
}) {
  return (
    <tr>
      <th scope="row">
        <Link href={flowHref(name)}>{name}</Link>
        {description === null ? null : (
          <div>
            <span className="flow-description">{description}</span>
          </div>
        )}
      </th>
      <td className="counts">
        <Counts name={name} counts={counts} />
      </td>
      <td className="number">{version}</td>
      <td>
        <Age at={at} />
      </td>
      <td className="wide muted">{by}</td>
    </tr>
  );
}

const shownStatuses = ['incident', 'running', 'waiting', 'paused'] as const;

function Counts({ name, counts }: Pick<ListedFlow, 'name' | 'counts'>) {
  const some = shownStatuses.filter((status) => counts[status] > 0);
  if (some.length === 0) return <span className="muted">none</span>;
  return some.map((status) => (
    <Link key={status} href={`/executions?flow=${encodeURIComponent(name)}&status=${status}`}>
      <StatusCount status={status} count={counts[status]} />
    </Link>
  ));
}

function NoFlows() {
  return (
    <Empty title="No flows yet">
      <p>
        A flow says which steps follow each other: tasks, decisions of people, waits, and what to do when one fails.
        Write one under “New flow”, or apply a file with <Command>millrace flow apply -f expense.yaml</Command>.
      </p>
    </Empty>
  );
}
