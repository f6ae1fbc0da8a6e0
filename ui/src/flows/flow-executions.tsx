/** The executions of one flow, by status. The list of all executions has more filters. */
import { Link } from 'wouter';
import { ExecutionsTable } from '../executions/executions-table.tsx';
import { StatusChoice } from '../executions/status-choice.tsx';
import { statusChoice } from '../executions/status-choices.ts';
import { useExecutions } from '../executions/use-executions.ts';
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { useUrlState } from '../kit/url-state.ts';
import type { FlowViewProps } from './use-flows.ts';

const shownRows = 50;

export function FlowExecutions({ flow: { name } }: FlowViewProps) {
  const [asked, choose] = useUrlState('status');
  const { value, statuses } = statusChoice(asked);
  const executions = useExecutions({ flow: name, status: statuses, limit: shownRows });
  const all = new URLSearchParams({ flow: name, ...(value === '' ? {} : { status: value }) });
  return (
    <section aria-label="Executions">
      <div className="bar">
        <StatusChoice value={value} change={choose} />
        <Link href={`/executions?${all}`}>Search and act on many</Link>
      </div>
      <Answer of={executions} what="Reading executions">
        {({ items, next }) =>
          items.length === 0 ? (
            <None name={name} isFiltered={value !== ''} />
          ) : (
            <>
              <ExecutionsTable executions={items} isOneFlow />
              {next === null ? null : (
                <nav className="pages" aria-label="Pages">
                  <Link className="button" href={`/executions?${all}&cursor=${encodeURIComponent(next)}`}>
                    Show older
                  </Link>
                </nav>
              )}
            </>
          )
        }
      </Answer>
    </section>
  );
}

function None({ name, isFiltered }: { readonly name: string; readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No such executions" />;
  return (
    <Empty title="No executions yet">
      <p>
        Start one above, or with{' '}
        <Command>{`millrace flow start ${/^[\w.-]+$/.test(name) ? name : JSON.stringify(name)}`}</Command>.
      </p>
    </Empty>
  );
}
