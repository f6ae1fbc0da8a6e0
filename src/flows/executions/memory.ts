/** An execution in memory: what `Execution.sealed` holds, and what of it is stored in the head row. Nothing here is changed in place. */
import type { Execution } from '../../contract/flows.ts';
import type { Delta } from '../interpreter/delta.ts';
import type { FlowNode, FlowState } from '../interpreter/state.ts';
import { type Json, sizeOf } from '../json.ts';
import type { Flow } from '../language/step.ts';
import { documentBytes, type LoadedFlow } from './loaded-flow.ts';

/** The layout of commits and snapshots that this release writes. */
export const commitFormat = 1;

export interface Memory {
  readonly flow: LoadedFlow;
  readonly key: string | null;
  /** The node that waits for its end. */
  readonly parent: { readonly execution: string; readonly nid: string; readonly attempt: number } | null;
  readonly depth: number;
  /** Whether it has a head row. A new execution has none before its first commit. */
  readonly isStored: boolean;
  readonly state: FlowState;
  readonly tally: Tally;
  /** Functions that no conductor hosted when they were called, by the name of the tracker. */
  readonly trackers: Readonly<Record<string, string>>;
  /** Characters of all deltas since the last snapshot, and of that snapshot. */
  readonly deltaChars: number;
  readonly snapshotChars: number;
}

export interface Tally {
  /** Calls of hosted functions under way. */
  readonly calls: number;
  /** Runs of workers under way. */
  readonly tasks: number;
  readonly incidents: number;
}

export const noTrackers: Memory['trackers'] = {};

export const noTally: Tally = { calls: 0, tasks: 0, incidents: 0 };

export function memoryOf(execution: Execution): Memory {
  return execution.sealed as Memory;
}

/** Whether work outside of the execution goes on for a node. */
export function isAtWork({ phase, memory = {} }: FlowNode): boolean {
  if (phase === 'run') return memory['isSent'] === true;
  return phase === 'close' && memory['isAwaited'] === true;
}

export function tallyOf(flow: Flow | null, nodes: FlowState['nodes']): Tally {
  return Object.values(nodes).reduce((tally, node) => add(tally, flow, node, 1), noTally);
}

/** The tally after a change of some nodes. */
export function tallyAfter(
  from: { readonly flow: Flow; readonly tally: Tally; readonly nodes: FlowState['nodes'] },
  to: { readonly flow: Flow; readonly delta: Delta },
): Tally {
  let { tally } = from;
  for (const [nid, node] of Object.entries(to.delta.nodes ?? {})) {
    const before = from.nodes[nid];
    if (before !== undefined) tally = add(tally, from.flow, before, -1);
    if (node !== null) tally = add(tally, to.flow, node, 1);
  }
  return tally;
}

function add(tally: Tally, flow: Flow | null, node: FlowNode, count: 1 | -1): Tally {
  if (node.phase === 'incident') return { ...tally, incidents: tally.incidents + count };
  if (!isAtWork(node)) return tally;
  const step = flow?.byPosition.get(node.at);
  if (step?.verb !== 'task') return tally;
  if (step.work.kind === 'hosted') return { ...tally, calls: tally.calls + count };
  return step.work.kind === 'run' ? { ...tally, tasks: tally.tasks + count } : tally;
}

/** The `status` of the head row. */
export const statusNumbers = { live: 0, paused: 1, incident: 2, done: 3, failed: 4, cancelled: 5 } as const;

export function statusOf({ state, tally }: Pick<Memory, 'state' | 'tally'>): number {
  if (state.ending !== null) return statusNumbers[state.ending.kind];
  if (state.isPaused) return statusNumbers.paused;
  return tally.incidents > 0 ? statusNumbers.incident : statusNumbers.live;
}

/** Whether inner messages are left, for the message `continue`. */
export function hasMore({ left, isPaused, ending }: FlowState): boolean {
  return left.length > 0 && !isPaused && ending === null;
}

/** The `calls` of the head row: what a new owner has to repeat. */
export function callsOf({ state, tally }: Pick<Memory, 'state' | 'tally'>): number {
  return tally.calls + (hasMore(state) ? 1 : 0);
}

/** Characters of a state as JSON. */
export function charsOf(state: FlowState): number {
  return sizeOf(state as unknown as Json, Number.POSITIVE_INFINITY);
}

/** About how many bytes of memory it takes. */
export function bytesOf({
  flow,
  deltaChars,
  snapshotChars,
}: Pick<Memory, 'flow' | 'deltaChars' | 'snapshotChars'>): number {
  return 1_000 + 3 * (deltaChars + snapshotChars) + documentBytes(flow);
}
