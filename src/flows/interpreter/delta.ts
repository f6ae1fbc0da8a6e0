/**
 * The difference between two states of an execution: what a commit stores, and the history shows.
 *
 * Nodes, fields, stored values and ended steps are named one by one, and of queues the items that came and went: an execution that receives a
 * million signals must not store a thousand of them with each. Everything else is stored whole where it changed. Folding all deltas
 * in order over the blank state gives the state.
 */
import type { Json, JsonObject } from '../json.ts';
import { blankState, type FlowNode, type FlowState } from './state.ts';

type Whole = 'input' | 'ret' | 'counters' | 'isPaused' | 'ending';
type Queue = 'early' | 'left' | 'seen';

/** New items are added at the end. */
interface QueueChange<T> {
  /** The places of items that are gone, in the former queue. */
  readonly gone?: readonly number[];
  readonly added?: readonly T[];
}

type QueueChanges = { readonly [K in Queue]?: QueueChange<FlowState[K][number]> };

export interface Delta extends Partial<Pick<FlowState, Whole>>, QueueChanges {
  /** By node; null: it is gone. */
  readonly nodes?: Readonly<Record<string, FlowNode | null>>;
  readonly f?: JsonObject;
  /** Removed values are in `dropped`, because null is a value. */
  readonly store?: JsonObject;
  readonly dropped?: readonly string[];
  readonly ended?: FlowState['ended'];
}

const wholes = ['input', 'ret', 'counters', 'isPaused', 'ending'] as const;

function foldDelta(state: FlowState, delta: Delta): FlowState {
  const { nodes: changed = {}, f, store, dropped = [], ended, early, left, seen, ...rest } = delta;
  const nodes = { ...state.nodes };
  for (const [nid, node] of Object.entries(changed)) {
    if (node === null) delete nodes[nid];
    else nodes[nid] = node;
  }
  const kept: Record<string, Json> = { ...state.store, ...store };
  for (const key of dropped) delete kept[key];
  const queues = {
    early: foldQueue(state.early, early),
    left: foldQueue(state.left, left),
    seen: foldQueue(state.seen, seen),
  };
  const ends = ended === undefined ? state.ended : { ...state.ended, ...ended };
  return { ...state, ...rest, ...queues, nodes, f: { ...state.f, ...f }, store: kept, ended: ends };
}

function foldQueue<T>(items: readonly T[], change: QueueChange<T> | undefined): readonly T[] {
  if (change === undefined) return items;
  const gone = new Set(change.gone);
  return [...items.filter((_, i) => !gone.has(i)), ...(change.added ?? [])];
}

export function foldDeltas(deltas: readonly Delta[], from: FlowState = blankState): FlowState {
  return deltas.reduce(foldDelta, from);
}

/** The parts of `to` that are stored whole and differ from `from`. */
export function changedWholes(from: FlowState, to: FlowState): Delta {
  return Object.fromEntries(wholes.filter((key) => from[key] !== to[key]).map((key) => [key, to[key]]));
}

/** How the queues of `to` differ from those of `from`. Items that stay are the same objects, in the same order. */
export function changedQueues(from: FlowState, to: FlowState): QueueChanges {
  return {
    ...changeOf('early', from.early, to.early),
    ...changeOf('left', from.left, to.left),
    ...changeOf('seen', from.seen, to.seen),
  };
}

function changeOf<T>(key: Queue, from: readonly T[], to: readonly T[]): Readonly<Record<string, QueueChange<T>>> {
  if (from === to) return {};
  let at = 0;
  const gone: number[] = [];
  for (const [i, item] of from.entries()) {
    if (item === to[at]) at += 1;
    else gone.push(i);
  }
  const added = to.slice(at);
  if (gone.length + added.length === 0) return {};
  return { [key]: { ...(gone.length > 0 && { gone }), ...(added.length > 0 && { added }) } };
}
