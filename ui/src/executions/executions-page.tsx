/** All executions, newest first: found by flow, status, label, key and time. The address holds the filters and the position. */
import { Link } from 'wouter';
import { FlowsHead } from '../flows/flows-head.tsx';
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { useTitle } from '../kit/title.ts';
import { useMayOperate } from '../session/session.ts';
import { BulkActions } from './bulk/bulk-actions.tsx';
import { ExecutionsFilters } from './executions-filters.tsx';
import { ExecutionsTable } from './executions-table.tsx';
import { StatusChoice } from './status-choice.tsx';
import { filterOf, useAddress } from './use-address.ts';
import { useExecutions } from './use-executions.ts';

const pageRows = 100;

export default function ExecutionsPage() {
  useTitle('Executions');
  const { asked, change, href } = useAddress();
  const filter = filterOf(asked);
  const executions = useExecutions({
    ...filter,
    parent: asked.parent || undefined,
    cursor: asked.cursor || undefined,
    limit: pageRows,
  });
  const isFiltered = Object.values(asked).some((text) => text !== '');
  return (
    <>
      <FlowsHead />
      <div className="bar">
        <StatusChoice value={asked.status} change={(status) => change({ status })} />
        {useMayOperate() && asked.parent === '' ? <BulkActions filter={filter} /> : null}
      </div>
      <ExecutionsFilters asked={asked} change={change} />
      <Answer of={executions} what="Reading executions">
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <NoExecutions isFiltered={isFiltered} />
            ) : (
              <ExecutionsTable executions={items} isOneFlow={asked.flow !== ''} />
            )}
            <nav className="pages" aria-label="Pages">
              {asked.cursor === '' ? null : (
                <Link className="button" href={href({ cursor: '' })}>
                  Newest executions
                </Link>
              )}
              {next === null ? null : (
                <Link className="button" href={href({ cursor: next })}>
                  Show older
                </Link>
              )}
            </nav>
          </>
        )}
      </Answer>
    </>
  );
}

function NoExecutions({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No such executions">
        <Link className="button" href="/executions">
          Show all executions
        </Link>
      </Empty>
    );
  }
  return (
    <Empty title="No executions yet">
      <p>
        An execution is one run through a flow. Start one on the page of <Link href="/flows">a flow</Link>.
      </p>
    </Empty>
  );
}
