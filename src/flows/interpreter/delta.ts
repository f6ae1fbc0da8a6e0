/**
 * The difference between two states of an execution: what a commit stores, and the history shows.
 *
 * Nodes, fields, stored values and ended steps are named one by one; everything else is stored whole where it changed. Folding all deltas in order
 * over the blank state gives the state.
 */
import type { Json, JsonObject } from '../json.ts';
import { blankState, type FlowNode, type FlowState } from './state.ts';

type Whole = 'input' | 'ret' | 'early' | 'left' | 'seen' | 'counters' | 'isPaused' | 'ending';

export interface Delta extends Partial<Pick<FlowState, Whole>> {
  /** By node; null: it is gone. */
  readonly nodes?: Readonly<Record<string, FlowNode | null>>;
  readonly f?: JsonObject;
  /** Removed values are in `dropped`, because null is a value. */
  readonly store?: JsonObject;
  readonly dropped?: readonly string[];
  readonly ended?: FlowState['ended'];
}

const wholes = ['input', 'ret', 'early', 'left', 'seen', 'counters', 'isPaused', 'ending'] as const;

function foldDelta(state: FlowState, delta: Delta): FlowState {
  const { nodes: changed = {}, f, store, dropped = [], ended, ...rest } = delta;
  const nodes = { ...state.nodes };
  for (const [nid, node] of Object.entries(changed)) {
    if (node === null) delete nodes[nid];
    else nodes[nid] = node;
  }
  const kept: Record<string, Json> = { ...state.store, ...store };
  for (const key of dropped) delete kept[key];
  return {
    ...state,
    ...rest,
    nodes,
    f: { ...state.f, ...f },
    store: kept,
    ended: ended === undefined ? state.ended : { ...state.ended, ...ended },
  };
}

export function foldDeltas(deltas: readonly Delta[]): FlowState {
  return deltas.reduce(foldDelta, blankState);
}

/** The parts of `to` that are stored whole and differ from `from`. */
export function changedWholes(from: FlowState, to: FlowState): Delta {
  return Object.fromEntries(wholes.filter((key) => from[key] !== to[key]).map((key) => [key, to[key]]));
}
