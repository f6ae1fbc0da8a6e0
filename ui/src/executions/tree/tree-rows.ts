/**
 * Lays out the tree of an execution as rows: every step of the document, and below a step that several nodes visit (the items
 * of `each`) a row for each of them.
 *
 * 1. A block that only holds the steps of its parent has no row of its own.
 * 2. Where much is at work, only the first visits are shown, those with incidents before all others, and only what a user opens.
 * 3. The selected row is always shown.
 */
import { type RowState, stateOfNode, type TreeNode, type TreeStep } from './tree-model.ts';

export interface TreeRow<N extends TreeNode = TreeNode> {
  /** The id of the node, or the position of a step that no node visits. */
  readonly key: string;
  readonly depth: number;
  readonly kind: 'step' | 'branch' | 'visit' | 'more';
  readonly step: TreeStep;
  readonly node: N | undefined;
  readonly state: RowState;
  /** Undefined: there is nothing inside. */
  readonly isOpen: boolean | undefined;
  /** Live steps inside a row that is closed, by state; of `more`, the visits that are not shown. */
  readonly hidden: ReadonlyMap<RowState, number>;
  /** For each level of depth, whether a line leads on to a later row; the last one is the row's own. */
  readonly lines: readonly boolean[];
}

export interface Layout<N extends TreeNode> {
  readonly root: TreeStep;
  readonly nodes: readonly N[];
  /** What a user has opened (true) or closed, by key. */
  readonly opened: ReadonlyMap<string, boolean>;
  readonly selected: string | undefined;
}

/** Visits of one step that are shown at first. */
const firstVisits = 10;
/** Documents with more steps begin with closed blocks, unless something in them is at work. */
const maxOpenSteps = 150;

type Draft<N extends TreeNode> = Omit<TreeRow<N>, 'lines'>;

export function layoutTree<N extends TreeNode>(layout: Layout<N>): TreeRow<N>[] {
  return withLines(new Walk(layout).rows());
}

class Walk<N extends TreeNode> {
  readonly #layout: Layout<N>;
  readonly #nodes: ReadonlyMap<string, N>;
  readonly #children: ReadonlyMap<string | null, readonly N[]>;
  readonly #byStep: ReadonlyMap<string | null, readonly N[]>;
  readonly #isSmall: boolean;
  /** Keys of rows that lead to the selected one. */
  readonly #leading: ReadonlySet<string>;
  readonly #states = new Map<string, RowState>();
  readonly #rows: Draft<N>[] = [];

  constructor(layout: Layout<N>) {
    this.#layout = layout;
    this.#nodes = new Map(layout.nodes.map((node) => [node.id, node]));
    this.#children = groupBy(layout.nodes, ({ parent }) => parent);
    this.#byStep = groupBy(layout.nodes, ({ at }) => at);
    this.#isSmall = countSteps(layout.root) <= maxOpenSteps;
    this.#leading = this.#leadingTo(layout.selected);
  }

  rows(): Draft<N>[] {
    const { root } = this.#layout;
    const [node] = this.#visits(root, null);
    this.#inside(root, node, node?.id ?? null, 0);
    return this.#rows;
  }

  /** The live visits of a step. An undo belongs to a node further out, because the step that it compensates has ended. */
  #visits({ at }: TreeStep, anchor: string | null): N[] {
    return (this.#byStep.get(at) ?? []).filter(({ parent }) => parent === anchor);
  }

  #step(step: TreeStep, anchor: string | null, depth: number): void {
    const visits = this.#visits(step, anchor);
    const [only] = visits;
    if (visits.length > 1) this.#manyVisits(step, visits, anchor, depth);
    else this.#row(step, only, anchor, depth, step.branch === null ? 'step' : 'branch');
  }

  #row(step: TreeStep, node: N | undefined, anchor: string | null, depth: number, kind: Draft<N>['kind']): void {
    const key = node?.id ?? step.at;
    const isOpen = step.children.length === 0 ? undefined : this.#isOpen(key, step, node, kind);
    const hidden = isOpen === false && node !== undefined ? this.#statesInside(node) : new Map<RowState, number>();
    const state = node === undefined ? step.state : this.#stateOf(node);
    this.#rows.push({ key, depth, kind, step, node, state, isOpen, hidden });
    if (isOpen === true) this.#inside(step, node, node?.id ?? anchor, depth + 1);
  }

  /** The steps inside; those of a block that is nothing else directly. */
  #inside(step: TreeStep, node: N | undefined, anchor: string | null, depth: number): void {
    for (const child of step.children) {
      const visits = isMereBlock(step, child) ? this.#visits(child, node?.id ?? anchor) : undefined;
      const [only] = visits ?? [];
      const isPlain = visits !== undefined && visits.length < 2 && (only === undefined || only.phase === 'run');
      if (isPlain) this.#inside(child, only, only?.id ?? anchor, depth);
      else this.#step(child, anchor, depth);
    }
  }

  #manyVisits(step: TreeStep, visits: readonly N[], anchor: string | null, depth: number): void {
    const key = `${anchor} ${step.at}`;
    const sorted = visits.toSorted((a, b) => this.#rank(a) - this.#rank(b) || visitOf(a.id) - visitOf(b.id));
    const showsAll = this.#layout.opened.get(key) === true || sorted.length <= firstVisits + 1;
    const isShown = ({ id }: N, i: number): boolean =>
      showsAll || i < firstVisits || this.#leading.has(id) || id === this.#layout.selected;
    for (const node of sorted.filter(isShown)) this.#row(step, node, anchor, depth, 'visit');
    const rest = sorted.filter((node, i) => !isShown(node, i));
    if (rest.length === 0) return;
    const hidden = tally(rest.map((node) => this.#stateOf(node)));
    this.#rows.push({ key, depth, kind: 'more', step, node: undefined, state: 'running', isOpen: undefined, hidden });
  }

  #rank(node: N): number {
    return this.#stateOf(node) === 'incident' ? 0 : 1;
  }

  #isOpen(key: string, step: TreeStep, node: N | undefined, kind: Draft<N>['kind']): boolean {
    if (this.#leading.has(key) || (kind !== 'visit' && this.#leading.has(step.at))) return true;
    const chosen = this.#layout.opened.get(key);
    if (chosen !== undefined) return chosen;
    if (node !== undefined && kind === 'visit') return this.#stateOf(node) === 'incident';
    // handlers and compensations matter once they run
    if (step.children.every(isAside)) return step.children.some(({ at }) => this.#byStep.has(at));
    if (node !== undefined) return true;
    return this.#isSmall && !isAside(step);
  }

  #stateOf(node: N): RowState {
    const known = this.#states.get(node.id);
    if (known !== undefined) return known;
    const state = this.#findState(node);
    this.#states.set(node.id, state);
    return state;
  }

  /** Of a visit: its own state, or that of what is at work inside it. */
  #findState(node: N): RowState {
    if (node.phase !== 'run') return stateOfNode(node);
    const states = this.#statesInside(node);
    if (states.size === 0) return stateOfNode(node);
    if (states.has('incident')) return 'incident';
    const [only] = states.keys();
    return states.size === 1 && (only === 'waiting' || only === 'retry') ? only : 'running';
  }

  #statesInside(node: N): ReadonlyMap<RowState, number> {
    const states: RowState[] = [];
    const pending = [...(this.#children.get(node.id) ?? [])];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const children = this.#children.get(next.id) ?? [];
      if (children.length === 0 || next.phase === 'incident') states.push(stateOfNode(next));
      pending.push(...children);
    }
    return tally(states);
  }

  #leadingTo(selected: string | undefined): ReadonlySet<string> {
    const leading = new Set<string>();
    const node = selected === undefined ? undefined : this.#nodes.get(selected);
    for (let id = node?.parent; id != null; id = this.#nodes.get(id)?.parent) leading.add(id);
    if (node !== undefined) return leading;
    // positions of the steps around it, of which each begins with that of its parent
    const parts = selected?.split('_') ?? [];
    for (let length = 1; length < parts.length; length++) leading.add(parts.slice(0, length).join('_'));
    return leading;
  }
}

/** Whether a child only holds the steps of its parent: the body of a loop, or the only branch of an `if`. */
function isMereBlock(step: TreeStep, child: TreeStep): boolean {
  if (child.branch === null || child.verb !== 'sequence' || isAside(child)) return false;
  return step.children.filter((other) => other.branch !== null && !isAside(other)).length === 1;
}

const asides: ReadonlySet<string> = new Set(['on_error', 'on_cancel', 'on_timeout', 'undo']);

/** Whether steps are done only if something goes wrong. */
export function isAside({ branch }: Pick<TreeStep, 'branch'>): boolean {
  return branch !== null && asides.has(branch.split(/[ [(]/)[0] ?? '');
}

function groupBy<N extends TreeNode>(
  nodes: readonly N[],
  keyOf: (node: N) => string | null,
): ReadonlyMap<string | null, readonly N[]> {
  const groups = new Map<string | null, N[]>();
  for (const node of nodes) {
    const key = keyOf(node);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [node]);
    else group.push(node);
  }
  return groups;
}

function tally(states: readonly RowState[]): ReadonlyMap<RowState, number> {
  const counts = new Map<RowState, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

function countSteps(step: TreeStep): number {
  return step.children.reduce((sum, child) => sum + countSteps(child), 1);
}

/** The number of a visit, with which the id of its node ends: `0_1-7`. */
export function visitOf(id: string): number {
  return Number(id.slice(id.lastIndexOf('-') + 1));
}

/** From the last row to the first: a line leads on where a later row of the same depth follows before a lesser one. */
function withLines<N extends TreeNode>(drafts: readonly Draft<N>[]): TreeRow<N>[] {
  const rows: TreeRow<N>[] = [];
  let later: boolean[] = [];
  for (const draft of drafts.toReversed()) {
    const lines = Array.from({ length: draft.depth + 1 }, (_, depth) => later[depth] === true);
    rows.push({ ...draft, lines });
    later = [...lines.slice(0, draft.depth), true];
  }
  return rows.toReversed();
}
