/**
 * The bars of an execution's timeline, from its history: one row for each step, in the order in which they first began, and in
 * it a bar for each visit, cut where its phase changed. A step that began and ended within one commit has no bar.
 */
import { type RowState, stateOfNode } from '../tree/tree-model.ts';

interface NodeChange {
  readonly id: string;
  readonly path: string;
  readonly verb: string | null;
  readonly from: string | null;
  readonly to: string | null;
  readonly attempt: number | null;
}

export interface Moment {
  readonly rev: number;
  readonly at: string;
  readonly changes: { readonly nodes: readonly NodeChange[] };
}

interface Stretch {
  readonly state: RowState;
  readonly from: number;
  readonly to: number;
}

export interface Bar {
  readonly node: string;
  readonly attempts: number;
  readonly stretches: readonly Stretch[];
  readonly from: number;
  readonly to: number;
  /** It is still at work. */
  readonly isOpen: boolean;
}

export interface BarRow {
  readonly path: string;
  readonly verb: string;
  readonly bars: readonly Bar[];
}

type Phase = Parameters<typeof stateOfNode>[0]['phase'];

interface Draft {
  readonly row: { readonly path: string; readonly verb: string; readonly bars: Bar[] };
  readonly node: string;
  readonly stretches: Stretch[];
  phase: Phase;
  since: number;
  attempts: number;
}

/** `endMs`: where bars of visits end that are still at work. */
export function barsOf(moments: readonly Moment[], endMs: number): BarRow[] {
  const rows = new Map<string, Draft['row']>();
  const live = new Map<string, Draft>();
  const startMs = Date.parse(moments[0]?.at ?? '');
  for (const { at, changes } of moments) {
    const ms = Date.parse(at);
    for (const change of changes.nodes) {
      // one that began before the first moment that is known
      const draft = live.get(change.id) ?? begin(rows, change, change.from === null ? ms : startMs);
      live.set(change.id, draft);
      if (draft.since < ms) draft.stretches.push({ state: stateOf(draft.phase), from: draft.since, to: ms });
      draft.since = ms;
      draft.attempts = Math.max(draft.attempts, change.attempt ?? 1);
      if (change.to === null) {
        live.delete(change.id);
        finish(draft, ms, false);
      } else {
        draft.phase = asPhase(change.to);
      }
    }
  }
  for (const draft of live.values()) {
    const to = Math.max(endMs, draft.since);
    draft.stretches.push({ state: stateOf(draft.phase), from: draft.since, to });
    finish(draft, to, true);
  }
  return [...rows.values()];
}

function begin(rows: Map<string, Draft['row']>, { id, path, verb, from, to }: NodeChange, since: number): Draft {
  const row = rows.get(path) ?? { path, verb: verb ?? '', bars: [] };
  rows.set(path, row);
  return { row, node: id, stretches: [], phase: asPhase(from ?? to ?? 'run'), since, attempts: 1 };
}

function finish({ row, node, attempts, stretches }: Draft, to: number, isOpen: boolean): void {
  const from = stretches[0]?.from ?? to;
  row.bars.push({ node, attempts, stretches: joined(stretches, isOpen), from, to, isOpen });
}

/** Neighbours of one state are one stretch; what has ended well is done. */
function joined(stretches: readonly Stretch[], isOpen: boolean): readonly Stretch[] {
  const all: Stretch[] = [];
  for (const stretch of stretches) {
    const state = !isOpen && stretch.state === 'running' ? 'done' : stretch.state;
    const last = all.at(-1);
    if (last?.state === state) all[all.length - 1] = { ...last, to: stretch.to };
    else all.push({ ...stretch, state });
  }
  return all;
}

const phases: ReadonlySet<string> = new Set(['run', 'backoff', 'close', 'undo', 'handle', 'incident']);

/** A phase that a newer server has invented is shown as work. */
function asPhase(text: string): Phase {
  return phases.has(text) ? (text as Phase) : 'run';
}

function stateOf(phase: Phase): RowState {
  return stateOfNode({ phase, waits: null });
}
