/** Work items as rows, oldest first. */
import { Link } from 'wouter';
import { flowHref } from '../flows/use-flows.ts';
import { Age, Due } from '../time/times.tsx';
import type { ListedWorkitem } from './use-workitems.ts';

interface Props {
  readonly items: readonly ListedWorkitem[];
  /** The one that is open beside the table. */
  readonly open: string | undefined;
  readonly select: (id: string) => void;
}

export function WorkitemsTable({ items, open, select }: Props) {
  return (
    <table className="table workitems-table">
      <thead>
        <tr>
          <th scope="col">What to do</th>
          <th scope="col">For</th>
          <th scope="col" className="wide">
            Flow
          </th>
          <th scope="col">Due</th>
          <th scope="col" className="wide">
            Asked
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <Row key={item.id} item={item} isOpen={item.id === open} select={select} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly item: ListedWorkitem;
  readonly isOpen: boolean;
  readonly select: (id: string) => void;
}

function Row({ item, isOpen, select }: RowProps) {
  const { id, title, assignee, team, flow, due_at: dueAt, created_at: createdAt, claimed_by: claimedBy } = item;
  return (
    <tr aria-current={isOpen ? 'true' : undefined}>
      <th scope="row">
        <button type="button" className="button bare workitem-open" onClick={() => select(id)}>
          {title}
        </button>
        {claimedBy === null ? null : <span className="tag">claimed by {claimedBy}</span>}
      </th>
      <td>{assignee ?? (team === null ? '–' : `team ${team}`)}</td>
      <td className="wide">
        <Link href={flowHref(flow)} className="quiet-link">
          {flow}
        </Link>
      </td>
      <td>{dueAt === null ? '–' : <Due at={dueAt} />}</td>
      <td className="wide muted">
        <Age at={createdAt} />
      </td>
    </tr>
  );
}
