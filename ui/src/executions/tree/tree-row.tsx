/** One row of the tree: lines that lead to it, the state, the step in a few words, and at the right what it waits for. */
import { memo } from 'react';
import { Due } from '../../time/times.tsx';
import { StepStateMark, toneOf } from '../status.tsx';
import type { Node } from '../use-executions.ts';
import { withoutTime } from '../waits-words.ts';
import type { RowState, TreeStep } from './tree-model.ts';
import { isAside, type TreeRow as Row, visitOf } from './tree-rows.ts';

interface Props {
  readonly row: Row<Node>;
  readonly isSelected: boolean;
  /** Whether Tab leads to this row. */
  readonly isCurrent: boolean;
}

/** Its tree hears clicks and keys. */
export const TreeRowView = memo(
  function TreeRowView({ row, isSelected, isCurrent }: Props) {
    const { key, depth, kind, state, isOpen } = row;
    return (
      <div
        className="tree-row"
        role="treeitem"
        aria-level={depth + 1}
        aria-expanded={isOpen}
        aria-selected={isSelected}
        tabIndex={isCurrent ? 0 : -1}
        data-key={key}
        data-kind={kind}
        data-state={state}
        data-bad={row.node?.phase === 'incident' ? '' : undefined}
      >
        <Lines row={row} />
        <Toggle isOpen={isOpen} />
        {kind === 'more' ? <More row={row} /> : <What row={row} />}
      </div>
    );
  },
  (before, after) =>
    before.isSelected === after.isSelected && before.isCurrent === after.isCurrent && isSame(before.row, after.row),
);

function isSame(a: Row<Node>, b: Row<Node>): boolean {
  const isAlike = a.key === b.key && a.depth === b.depth && a.kind === b.kind && a.state === b.state;
  return (
    isAlike &&
    a.isOpen === b.isOpen &&
    a.step === b.step &&
    a.node === b.node &&
    a.lines.join() === b.lines.join() &&
    [...a.hidden].join() === [...b.hidden].join()
  );
}

function Lines({ row: { lines, depth } }: { readonly row: Row }) {
  return lines.slice(1).map((goesOn, i) => (
    // a level is its place
    <span key={i} className="tree-line" data-own={i === depth - 1 ? '' : undefined} data-on={goesOn ? '' : undefined} />
  ));
}

/** For the mouse: the keyboard opens with the arrow keys. */
function Toggle({ isOpen }: { readonly isOpen: boolean | undefined }) {
  if (isOpen === undefined) return <span className="tree-gap" />;
  return (
    <span className="tree-toggle" aria-hidden="true" data-open={isOpen ? '' : undefined}>
      <svg className="icon" viewBox="0 0 16 16">
        <path d="m6 3.5 4.5 4.5L6 12.5" />
      </svg>
    </span>
  );
}

function What({ row }: { readonly row: Row<Node> }) {
  const { kind, step, node, state, hidden, isOpen } = row;
  const asides = isOpen === false && kind !== 'visit' ? asidesOf(step) : [];
  return (
    <>
      <StepStateMark state={state} />
      <span className="tree-what">
        {kind === 'branch' ? <span className="tree-branch">{step.branch}</span> : null}
        {kind === 'visit' && node !== undefined ? <span className="tree-visit">{nameOfVisit(node)}</span> : null}
        {kind === 'step' || (kind === 'visit' && step.branch === null) ? (
          <>
            <span className="tree-verb">{step.verb}</span> <span className="tree-title">{step.title}</span>
          </>
        ) : null}
        {step.tag === null ? null : <span className="tag tree-tag">{step.tag}</span>}
        {node !== undefined && node.attempt > 1 ? <span className="tree-attempt"> attempt {node.attempt}</span> : null}
        {asides.length === 0 ? null : <span className="tree-aside">{asides.join(', ')}</span>}
      </span>
      {hidden.size > 0 ? <Hidden hidden={hidden} /> : node === undefined ? null : <Waits node={node} />}
    </>
  );
}

/** The handlers and compensations of a step that is closed. */
function asidesOf({ children }: TreeStep): string[] {
  return [...new Set(children.filter(isAside).map(({ branch }) => branch ?? ''))];
}

/** Items of `each` have a key; other visits are told apart by their number: they began in this order. */
function nameOfVisit({ id, item }: Node): string {
  return item === null ? `#${visitOf(id)}` : `item ${item.key}`;
}

function Waits({ node: { waits, error } }: { readonly node: Node }) {
  if (waits === null || waits.kind === 'steps') return null;
  if (error !== null && waits.kind === 'incident')
    return (
      <span className="tree-note" data-bad="" title={error.message}>
        {error.code}: {error.message}
      </span>
    );
  return (
    <span className="tree-note" title={waits.message}>
      {withoutTime(waits)}
      {waits.until === null ? null : (
        <span className="tree-due">
          {' '}
          <Due at={waits.until} />
        </span>
      )}
    </span>
  );
}

function Hidden({ hidden }: { readonly hidden: ReadonlyMap<RowState, number> }) {
  return (
    <span className="tree-note">
      {[...hidden].map(([state, count]) => (
        <span key={state} className="state count" data-state={toneOf(state)}>
          {count} {state}
        </span>
      ))}
    </span>
  );
}

function More({ row: { hidden } }: { readonly row: Row }) {
  const count = [...hidden.values()].reduce((sum, each) => sum + each, 0);
  return (
    <>
      <span className="tree-more">Show {count.toLocaleString('en')} more</span>
      <Hidden hidden={hidden} />
    </>
  );
}
