/** Commits of an execution as rows: revision, time, message with its actor, and what changed. */
import { Link } from 'wouter';
import { formatInstant } from '../../time/format.ts';
import type { HistoryEntry } from '../use-executions.ts';
import { Changes, type Links, What } from './history-entry.tsx';

interface Props extends Links {
  /** Newest first. */
  readonly entries: readonly HistoryEntry[];
  /** The revision that is shown elsewhere on the page. */
  readonly current: number;
}

export function HistoryTable({ entries, current, href, names }: Props) {
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
          <Row key={entry.rev} entry={entry} isCurrent={entry.rev === current} href={href} names={names} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps extends Links {
  readonly entry: HistoryEntry;
  readonly isCurrent: boolean;
}

function Row({ entry, isCurrent, href, names }: RowProps) {
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
        <What entry={entry} href={href} names={names} />
      </td>
      <td className="wide">
        <Changes entry={entry} href={href} names={names} />
      </td>
      <td className="actions">
        <Link href={href({ from: String(rev - 1), to: String(rev) })}>Diff</Link>
      </td>
    </tr>
  );
}
