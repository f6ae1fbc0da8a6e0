/** Commits of an execution as rows: revision, time, message with its actor, and what changed. */
import { Link } from 'wouter';
import { JsonView } from '../../kit/json/json-view.tsx';
import { formatInstant, formatSpan } from '../../time/format.ts';
import type { HistoryEntry } from '../use-executions.ts';

type Href = (values: Readonly<Record<string, string>>) => string;

interface Props {
  /** Newest first. */
  readonly entries: readonly HistoryEntry[];
  /** The revision that is shown elsewhere on the page. */
  readonly current: number;
  readonly href: Href;
}

export function HistoryTable({ entries, current, href }: Props) {
  return (
    <table className="table history-table">
      <thead>
        <tr>
          <th scope="col" className="number">
            Revision
          </th>
          <th scope="col">When</th>
          <th scope="col">What happened</th>
          <th scope="col" className="wide">
            What changed
          </th>
          <th scope="col">
            <span className="unseen">Compare</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <Row key={entry.rev} entry={entry} isCurrent={entry.rev === current} href={href} />
        ))}
      </tbody>
    </table>
  );
}

function Row({
  entry,
  isCurrent,
  href,
}: {
  readonly entry: HistoryEntry;
  readonly isCurrent: boolean;
  readonly href: Href;
}) {
  const { rev, at } = entry;
  return (
    <tr aria-current={isCurrent ? 'true' : undefined}>
      <th scope="row" className="number">
        <Link href={href({ view: '', rev: String(rev) })} title="The steps as at this revision">
          {rev}
        </Link>
      </th>
      <td>
        <time dateTime={at}>{formatInstant(at)}</time>
      </td>
      <td>
        <What entry={entry} />
      </td>
      <td className="wide">
        <Changes entry={entry} />
      </td>
      <td className="actions">
        <Link href={href({ from: String(rev - 1), to: String(rev) })}>Diff</Link>
      </td>
    </tr>
  );
}

const points: Readonly<Record<HistoryEntry['point'], string>> = {
  launch: 'Launched',
  answer: 'Answer',
  timer: 'Timer',
  signal: 'Signal',
  operate: 'Operation',
  continue: 'Went on',
};

function What({ entry: { point, summary, actor, node, planned_at: plannedAt, at } }: { readonly entry: HistoryEntry }) {
  const lateMs = plannedAt === null ? 0 : Date.parse(at) - Date.parse(plannedAt);
  return (
    <>
      <strong>{points[point]}</strong> {summary}
      {node === null ? null : (
        <>
          {' '}
          <code className="muted">{node}</code>
        </>
      )}
      {actor === null ? null : <span className="muted"> by {actor}</span>}
      {plannedAt === null ? null : <span className="muted"> {formatSpan(lateMs)} after it was due</span>}
    </>
  );
}

const maxNodes = 6;

function Changes({ entry: { changes, sent } }: { readonly entry: HistoryEntry }) {
  const { nodes, nodes_total: total, fields, status } = changes;
  const names = Object.keys(fields);
  return (
    <div className="history-changes">
      {status === null ? null : <span className="tag">{status}</span>}
      {nodes.slice(0, maxNodes).map(({ id, path, from, to }) => (
        <span key={id} className="history-node">
          <code>{path === '' ? id : path}</code>{' '}
          <span className="muted">{from === null ? 'began' : to === null ? 'ended' : to}</span>
        </span>
      ))}
      {total > maxNodes ? (
        <span className="muted">and {(total - maxNodes).toLocaleString('en')} more steps</span>
      ) : null}
      {names.length === 0 ? null : (
        <details>
          <summary>
            set{' '}
            {names.slice(0, 5).map((name) => (
              <code key={name}>f.{name} </code>
            ))}
          </summary>
          <JsonView label="Fields that were set" value={fields} />
        </details>
      )}
      {sent.length === 0 ? null : <span className="muted">{sentWords(sent)}</span>}
    </div>
  );
}

const sentNames: Readonly<Record<HistoryEntry['sent'][number]['kind'], string>> = {
  task: 'task sent',
  stop: 'task stopped',
  timer: 'timer set',
  launch: 'execution launched',
  signal: 'signal sent',
};

function sentWords(sent: HistoryEntry['sent']): string {
  const counts = new Map<string, number>();
  for (const { kind } of sent) counts.set(sentNames[kind], (counts.get(sentNames[kind]) ?? 0) + 1);
  return [...counts].map(([words, count]) => (count === 1 ? words : `${words} × ${count}`)).join(', ');
}
