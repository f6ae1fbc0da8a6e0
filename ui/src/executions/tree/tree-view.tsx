/**
 * The steps of an execution as a tree, with the state of each and what it waits for. Arrow keys move, open and close; Enter selects
 * a step. A user decides what is open; the selected step always is in sight.
 */
import { type KeyboardEvent, type MouseEvent, useEffect, useMemo, useRef, useState } from 'react';
import type { Node } from '../use-executions.ts';
import type { TreeStep } from './tree-model.ts';
import { layoutTree, type TreeRow } from './tree-rows.ts';
import { TreeRowView } from './tree-row.tsx';
import './tree.css';

interface Props {
  readonly root: TreeStep;
  readonly nodes: readonly Node[];
  readonly selected: string | undefined;
  readonly select: (key: string | undefined) => void;
}

export function TreeView({ root, nodes, selected, select }: Props) {
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(() => new Map());
  const rows = useMemo(() => layoutTree({ root, nodes, opened, selected }), [root, nodes, opened, selected]);
  const box = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<string>();
  const current = rows.find(({ key }) => key === (focused ?? selected))?.key ?? rows[0]?.key;
  useInSight(box, selected);

  const setOpen = (key: string, isOpen: boolean): void => setOpened((before) => new Map(before).set(key, isOpen));
  const open = (row: TreeRow): void => {
    setFocused(row.key);
    if (row.kind === 'more') setOpen(row.key, true);
    else select(row.key === selected ? undefined : row.key);
  };
  const focus = (row: TreeRow | undefined): void => {
    if (row === undefined) return;
    setFocused(row.key);
    box.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(row.key)}"]`)?.focus();
  };
  const press = (event: KeyboardEvent): void => {
    const index = rows.findIndex(({ key }) => key === current);
    const row = rows[index];
    if (row === undefined || event.altKey || event.metaKey || event.ctrlKey) return;
    const move = moves[event.key];
    if (event.key === 'Enter' || event.key === ' ') open(row);
    else if (event.key === 'ArrowRight' && row.isOpen === false) setOpen(row.key, true);
    else if (event.key === 'ArrowLeft' && row.isOpen === true) setOpen(row.key, false);
    else if (move !== undefined) focus(rows[move(rows, index)]);
    else return;
    event.preventDefault();
  };
  // here and not at each row, so that rows are drawn again only if they have changed
  const click = ({ target }: MouseEvent): void => {
    if (!(target instanceof Element)) return;
    const key = target.closest<HTMLElement>('[data-key]')?.dataset['key'];
    const row = rows.find((each) => each.key === key);
    if (row === undefined) return;
    if (target.closest('.tree-toggle') !== null && row.isOpen !== undefined) setOpen(row.key, !row.isOpen);
    else open(row);
  };
  return (
    // the items take the focus, one at a time
    // oxlint-disable-next-line jsx-a11y/interactive-supports-focus
    <div ref={box} className="tree" role="tree" aria-label="Steps" onKeyDown={press} onClick={click}>
      {rows.map((row) => (
        <TreeRowView key={row.key} row={row} isSelected={row.key === selected} isCurrent={row.key === current} />
      ))}
    </div>
  );
}

type Rows = readonly TreeRow[];

const moves: Readonly<Record<string, (rows: Rows, at: number) => number>> = {
  ArrowDown: (rows, at) => Math.min(rows.length - 1, at + 1),
  ArrowUp: (_, at) => Math.max(0, at - 1),
  Home: () => 0,
  End: (rows) => rows.length - 1,
  /** To the row around it. */
  ArrowLeft: (rows, at) => {
    const depth = rows[at]?.depth ?? 0;
    const around = rows.slice(0, at).findLastIndex((row) => row.depth < depth);
    return around === -1 ? at : around;
  },
  /** Into an open row. */
  ArrowRight: (rows, at) => (rows[at]?.isOpen === true ? Math.min(rows.length - 1, at + 1) : at),
};

/** A step that an address selects may be far down. */
function useInSight(box: { readonly current: HTMLElement | null }, key: string | undefined): void {
  useEffect(() => {
    if (key === undefined) return;
    box.current?.querySelector(`[data-key="${CSS.escape(key)}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [box, key]);
}
