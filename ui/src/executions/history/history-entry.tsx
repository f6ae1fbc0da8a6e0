/** One commit in words: its message with the actor, and what it changed. */
import { Link } from 'wouter';
import { JsonView } from '../../kit/json/json-view.tsx';
import { formatSpan } from '../../time/format.ts';
import type { StepNames } from '../step-names.ts';
import '../tree/tree.css';
import type { HistoryEntry } from '../use-executions.ts';

type Href = (values: Readonly<Record<string, string>>) => string;

/** What rows need beside their entry. */
export interface Links {
  readonly href: Href;
  readonly names: StepNames;
}

const points: Readonly<Record<HistoryEntry['point'], string>> = {
  launch: 'Launched',
  answer: 'Answer',
  timer: 'Timer',
  signal: 'Signal',
  operate: 'Operation',
  continue: 'Went on',
};

interface EntryProps extends Links {
  readonly entry: HistoryEntry;
}

/** A step, with a link to it as it was after the commit. */
function StepLink({ node, rev, href, names }: Links & { readonly node: string; readonly rev: number }) {
  const { verb, title, path } = names.ofNode(node);
  return (
    <Link href={href({ view: '', rev: String(rev), node })} title={`${path} ${node}`} className="quiet-link step-link">
      <span className="tree-verb">{verb}</span> {title}
    </Link>
  );
}

export function What({ entry, href, names }: EntryProps) {
  const { point, summary, actor, node, planned_at: plannedAt, at, rev } = entry;
  const lateMs = plannedAt === null ? 0 : Date.parse(at) - Date.parse(plannedAt);
  return (
    <>
      <strong>{points[point]}</strong> {summary}
      {node === null ? null : (
        <>
          {': '}
          <StepLink node={node} rev={rev} href={href} names={names} />
        </>
      )}
      {actor === null ? null : <span className="muted"> by {actor}</span>}
      {plannedAt === null ? null : <span className="muted"> {formatSpan(lateMs)} after it was due</span>}
    </>
  );
}

const maxNodes = 6;

const phaseWords: Readonly<Record<string, string>> = {
  run: 'at work',
  backoff: 'pauses before it is tried again',
  close: 'is being ended',
  undo: 'is being undone',
  handle: 'is handled',
  incident: 'has failed',
};

export function Changes({ entry: { changes, sent, rev }, href, names }: EntryProps) {
  const { nodes, nodes_total: total, fields, status } = changes;
  const set = Object.keys(fields);
  return (
    <div className="history-changes">
      {status === null ? null : <span className="tag">{status}</span>}
      {nodes.slice(0, maxNodes).map(({ id, from, to }) => (
        <span key={id} className="history-node">
          <StepLink node={id} rev={rev} href={href} names={names} />{' '}
          <span className="muted">{from === null ? 'began' : to === null ? 'ended' : phaseWords[to]}</span>
        </span>
      ))}
      {total > maxNodes ? (
        <span className="muted">and {(total - maxNodes).toLocaleString('en')} more steps</span>
      ) : null}
      {set.length === 0 ? null : (
        <details>
          <summary>
            set{' '}
            {set.slice(0, 5).map((name) => (
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
