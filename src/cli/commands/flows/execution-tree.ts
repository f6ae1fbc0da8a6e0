/**
 * Draws the tree of an execution: a line for each step, with its state and what it waits for.
 *
 * 1. Lines fit the terminal: long titles and reasons are cut, and narrow terminals get fewer columns. Without a terminal nothing is cut.
 * 2. A drawing with a limit of rows folds parts in which nothing happens, then omits the rest and says how much.
 * 3. A block with one step, such as `then`, is drawn in the line of that step.
 */
import type { StepState, TreeStep } from '../../../api/executions/shapes.ts';
import { formatAge } from '../../print/format-age.ts';
import type { Style } from '../../print/paint.ts';
import { type Column, type Frame, renderTable, type Row } from '../../print/table.ts';

/** The parts of a live step that are drawn. */
export interface DrawnNode {
  readonly id: string;
  readonly phase: string;
  readonly since: string;
  readonly attempt: number;
  readonly waits: { readonly kind: string; readonly message: string } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface DrawOptions extends Frame {
  readonly nowMs: number;
  /** Lines at most, the heading included. Undefined: all. */
  readonly maxRows?: number | undefined;
}

const marks: Readonly<Record<StepState, string>> = {
  done: '✓',
  running: '●',
  waiting: '◦',
  incident: '!',
  failed: '✗',
  cancelled: '–',
  skipped: '»',
  idle: '·',
};

const stateStyles: Readonly<Record<StepState, Style>> = {
  done: 'green',
  running: 'cyan',
  waiting: 'yellow',
  incident: 'red',
  failed: 'red',
  cancelled: 'yellow',
  skipped: 'dim',
  idle: 'dim',
};

/** Below this width, branches are drawn with two columns instead of three. */
const narrowColumns = 80;
/** Below this width, ids and times are left out. */
const tinyColumns = 60;

export function drawTree(tree: TreeStep, nodes: readonly DrawnNode[], options: DrawOptions): string[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const isNarrow = options.width !== undefined && options.width < narrowColumns;
  const art = isNarrow ? narrowArt : wideArt;
  const all = linesOf(tree.children, { art, prefix: '', isFolded: false });
  const maxLines = (options.maxRows ?? Number.POSITIVE_INFINITY) - 1;
  const lines = all.length <= maxLines ? all : linesOf(tree.children, { art, prefix: '', isFolded: true });
  const kept = lines.length <= maxLines ? lines : lines.slice(0, Math.max(0, maxLines - 1));
  const isTiny = options.width !== undefined && options.width < tinyColumns;
  const columns = isTiny ? tinyTable : wideTable;
  const rows = kept.map((line) => rowOf(line, byId, options.nowMs));
  const drawn = renderTable(
    columns,
    isTiny ? rows.map(([step = '', state = '', waits = '']) => [step, state, waits]) : rows,
    options,
  );
  const omitted = lines.length - kept.length;
  return omitted === 0 ? drawn : [...drawn, options.paint('dim', `… ${omitted} more lines`)];
}

const tinyTable: readonly Column[] = [
  { title: 'STEP', flexible: true },
  { title: 'STATE' },
  { title: 'WAITS FOR', flexible: true },
];
const wideTable: readonly Column[] = [...tinyTable, { title: 'FOR', align: 'right' }, { title: 'NODE' }];

interface Art {
  readonly middle: string;
  readonly last: string;
  readonly below: string;
  readonly belowLast: string;
}
const wideArt: Art = { middle: '├─ ', last: '└─ ', below: '│  ', belowLast: '   ' };
const narrowArt: Art = { middle: '├ ', last: '└ ', below: '│ ', belowLast: '  ' };

interface Line {
  /** With the branches on its left. */
  readonly label: string;
  readonly step: TreeStep;
}

interface Place {
  readonly art: Art;
  readonly prefix: string;
  /** Parts in which nothing happens are drawn as one line. */
  readonly isFolded: boolean;
}

function linesOf(steps: readonly TreeStep[], place: Place): Line[] {
  return steps.flatMap((outer, i) => {
    const { art, prefix, isFolded } = place;
    const isLast = i === steps.length - 1;
    const { step, branch } = unwrap(outer);
    const hidden = isFolded && isQuiet(step) ? countSteps(step) : 0;
    const more = hidden === 0 ? '' : ` … ${hidden} step${hidden === 1 ? '' : 's'} inside`;
    const label = `${prefix}${isLast ? art.last : art.middle}${marks[step.state]} ${branch}${titleOf(step)}${more}`;
    if (hidden > 0) return [{ label, step }];
    const inside = { ...place, prefix: prefix + (isLast ? art.belowLast : art.below) };
    return [{ label, step }, ...linesOf(step.children, inside)];
  });
}

/** A block stands for its only step; the name of the branch goes before it. */
function unwrap(outer: TreeStep): { readonly step: TreeStep; readonly branch: string } {
  const branch = outer.branch === null ? '' : `${outer.branch}: `;
  const [only, ...others] = outer.children;
  if (!isBlock(outer) || others.length > 0 || only === undefined) return { step: outer, branch };
  const inner = unwrap(only);
  return { step: inner.step, branch: `${branch}${inner.branch}` };
}

function titleOf(step: TreeStep): string {
  const { verb, title, tag } = step;
  const words = [isBlock(step) ? '' : verb, title, tag === null ? '' : `#${tag}`];
  return words.filter((word) => word !== '').join(' ');
}

/** Whether no step inside it is alive or has failed. */
function isQuiet({ state, children }: TreeStep): boolean {
  const isCalm = state === 'idle' || state === 'done' || state === 'skipped' || state === 'cancelled';
  return isCalm && children.every(isQuiet);
}

/** Blocks such as `then` are no steps of their own. */
function countSteps({ children }: TreeStep): number {
  return children.reduce((sum, child) => sum + (isBlock(child) ? 0 : 1) + countSteps(child), 0);
}

function isBlock({ branch, verb, title }: TreeStep): boolean {
  return branch !== null && verb === 'sequence' && title === '';
}

function rowOf({ label, step }: Line, byId: ReadonlyMap<string, DrawnNode>, nowMs: number): Row {
  const { state } = step;
  const live = step.nodes.flatMap((id) => byId.get(id) ?? []);
  const shown = live.find(({ phase }) => phase === 'incident') ?? live[0];
  const times = step.nodes.length > 1 ? ` ×${step.nodes.length}` : '';
  return [
    state === 'idle' || state === 'skipped' ? { text: label, style: 'dim' } : label,
    { text: state === 'idle' ? '' : `${state}${times}`, style: stateStyles[state] },
    shown === undefined ? '' : waitsOf(shown),
    shown === undefined ? '' : formatAge(shown.since, nowMs),
    shown?.id ?? '',
  ];
}

function waitsOf({ waits, error, attempt }: DrawnNode): string {
  const again = attempt > 1 ? `attempt ${attempt}` : '';
  const reason =
    error === null
      ? waits === null || waits.kind === 'steps'
        ? ''
        : waits.message
      : `${error.code}: ${error.message}`;
  return [reason, again].filter((part) => part !== '').join(', ');
}
