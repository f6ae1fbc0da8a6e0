/**
 * The commits of an execution, newest first: who or what caused each, and what it changed. Two revisions can be compared
 * (`?from=&to=`), and each can be looked at.
 */
import { useMemo } from 'react';
import { Link, useSearchParams } from 'wouter';
import { Answer } from '../../kit/answer.tsx';
import { Empty } from '../../kit/empty.tsx';
import { useShown, withChanges } from '../../kit/url-state.ts';
import { useHistory, type ExecutionViewProps } from '../use-executions.ts';
import { makeStepNames } from '../step-names.ts';
import { Comparison } from './comparison.tsx';
import { HistoryTable } from './history-table.tsx';

const firstRows = 100;
const mostRows = 2_000;

export default function HistoryView({ execution, latest }: ExecutionViewProps) {
  const [shown, showMore] = useShown(firstRows, mostRows);
  const history = useHistory(latest.id, latest.rev, shown);
  const [search] = useSearchParams();
  const names = useMemo(() => makeStepNames(latest.tree), [latest.tree]);
  const [from, to] = [numberIn(search, 'from'), numberIn(search, 'to')];
  const href = (values: Readonly<Record<string, string>>): string =>
    `/executions/${latest.id}?${withChanges(search, values)}`;
  return (
    <section aria-label="History" className="execution-history">
      {from === undefined || to === undefined ? null : (
        <Comparison execution={latest} from={from} to={to} close={href({ from: '', to: '' })} />
      )}
      <Answer of={history} what="Reading the history">
        {(entries) =>
          entries.length === 0 ? (
            <Empty title={latest.rev === 0 ? 'It has not begun' : 'These commits were deleted'}>
              <p>
                {latest.rev === 0
                  ? 'Its launch is stored, and takes effect when a conductor takes it.'
                  : 'Retention keeps the newest state of an execution, and only some of its commits.'}
              </p>
            </Empty>
          ) : (
            <>
              <HistoryTable entries={entries.toReversed()} current={execution.rev} href={href} names={names} />
              {shown < latest.rev && shown < mostRows ? (
                <button type="button" className="button more" onClick={showMore}>
                  Show older
                </button>
              ) : null}
            </>
          )
        }
      </Answer>
      {history.data !== undefined && shown >= mostRows && latest.rev > mostRows ? (
        <p className="muted">
          Older ones: <Link href={href({ rev: String(latest.rev - mostRows) })}>look at an earlier revision</Link>.
        </p>
      ) : null}
    </section>
  );
}

function numberIn(search: URLSearchParams, name: string): number | undefined {
  const text = search.get(name) ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
