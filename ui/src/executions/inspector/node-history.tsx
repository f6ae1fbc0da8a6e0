/** The newest commits that changed a step: its attempts, answers and timers, each with its revision. */
import { Link, useSearchParams } from 'wouter';
import { JsonView } from '../../kit/json/json-view.tsx';
import { withChanges } from '../../kit/url-state.ts';
import { Age } from '../../time/times.tsx';
import { type Execution, type HistoryEntry, useHistory } from '../use-executions.ts';

interface Props {
  readonly execution: Execution;
  readonly at: string;
  /** Only this visit. */
  readonly node: string | undefined;
}

/** Commits that are looked through. */
const maxSearched = 300;
const maxShown = 12;

export function NodeHistory({ execution: { id, rev }, at, node }: Props) {
  const { data } = useHistory(id, rev, maxSearched);
  const [search] = useSearchParams();
  if (data === undefined) return null;
  const isOfStep = (visit: string): boolean => (node === undefined ? visit.startsWith(`${at}-`) : visit === node);
  const found = data.flatMap((entry) => describe(entry, isOfStep)).toReversed();
  if (found.length === 0) return null;
  return (
    <section>
      <h3>History</h3>
      <ul className="node-history">
        {found.slice(0, maxShown).map(({ rev: at, when, text, set }) => (
          <li key={`${at} ${text}`}>
            <span>{text}</span>{' '}
            <span className="muted">
              <Age at={when} />,{' '}
              <Link href={`/executions/${id}?${withChanges(search, { rev: String(at) })}`}>revision {at}</Link>
            </span>
            {set === undefined ? null : <JsonView label={`Fields that revision ${at} set`} value={set} />}
          </li>
        ))}
      </ul>
      {found.length > maxShown ? <p className="muted">and {found.length - maxShown} earlier ones</p> : null}
    </section>
  );
}

interface Line {
  readonly rev: number;
  readonly when: string;
  readonly text: string;
  /** The fields of the execution that its answer set: its result, if the document keeps it. */
  readonly set: HistoryEntry['changes']['fields'] | undefined;
}

function describe({ rev, at, node, summary, point, changes }: HistoryEntry, isOfStep: (id: string) => boolean): Line[] {
  const change = changes.nodes.find(({ id, from, to }) => isOfStep(id) && from !== to);
  const isForIt = node !== null && isOfStep(node);
  if (change === undefined && !isForIt) return [];
  const became = change === undefined ? '' : becameOf(change);
  const message = isForIt ? (summary === '' ? point : summary.replace(`${node}/`, '')) : '';
  const isSet = isForIt && change?.to === null && Object.keys(changes.fields).length > 0;
  const set = isSet ? changes.fields : undefined;
  return [{ rev, when: at, set, text: [message, became].filter((part) => part !== '').join(': ') }];
}

function becameOf({ from, to, attempt }: HistoryEntry['changes']['nodes'][number]): string {
  if (from === null) return attempt !== null && attempt > 1 ? `began, attempt ${attempt}` : 'began';
  if (to === null) return 'ended';
  return `${from} → ${to}`;
}
