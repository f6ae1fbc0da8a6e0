/** The next revision of an execution, from a result of the interpreter: its memory, and what its commit writes. */
import type { FlowMessage } from '../../../contract/flow-messages.ts';
import type { Circumstances, Execution, FlowRun } from '../../../contract/flows.ts';
import type { Interpreted } from '../../interpreter/interpret.ts';
import type { FlowState, MessageBody } from '../../interpreter/state.ts';
import { answerParent } from './answer-parent.ts';
import { type Change, collectWork, endedItems, trackersOf } from './effects-of-run.ts';
import { eventsOfRun } from './events-of-run.ts';
import { evaluateLabels } from '../labels.ts';
import { swapFlow } from '../loaded-flow.ts';
import { bytesOf, hasMore, type Memory, tallyAfter } from '../memory.ts';
import { launchOf } from './read-message.ts';
import type { RunDetails } from './run-details.ts';
import { summaryOf } from './summary.ts';

/** No snapshot is written while the deltas since the last one are shorter than this, in characters. */
const minSnapshotChars = 16 * 1024;

export interface Result {
  /** Before the message. */
  readonly memory: Memory;
  readonly body: MessageBody;
  readonly result: Interpreted;
  readonly how: Circumstances;
}

export function commitOf(
  execution: Execution,
  message: FlowMessage,
  { memory: before, body, result, how }: Result,
): FlowRun {
  const { state, delta, effects } = result;
  const { id } = execution;
  const rev = execution.rev + 1;
  const deltaText = JSON.stringify(delta);
  const snapshot = snapshotOf(before, state, deltaText.length);
  const after = remember(before, result, { deltaChars: deltaText.length, snapshot, hosted: how.hosted });
  const change: Change = { execution: id, rev, from: before, to: after, effects, hosted: how.hosted, nowMs: how.nowMs };
  const work = collectWork(change);
  const ended = endedItems(before, after, Object.keys(delta.nodes ?? {}));
  const details: RunDetails = {
    entry: {
      message: JSON.stringify(summaryOf(message, body, before)),
      delta: deltaText,
      out: work.out.length === 0 ? '[]' : JSON.stringify(work.out),
    },
    snapshot,
    document: ownDocument(message, before, result),
    labels: labelsOf(id, before, after, how),
    trackers: changedTrackers(before.trackers, after.trackers),
    runs: work.runs,
    stoppedRuns: work.stoppedRuns,
    items: work.items,
    endedItems: ended,
    children: work.children,
    messages: [...work.messages, ...answerParent(after)],
    events: eventsOfRun({ message, body, before, after, work, endedItems: ended }),
  };
  return {
    from: execution,
    to: {
      id,
      rev,
      owner: execution.owner,
      epoch: execution.epoch,
      over: state.ending !== null,
      bytes: bytesOf(after),
      functions: after.flow.functions,
      sealed: after,
    },
    message,
    calls: work.calls,
    stops: work.stops,
    more: hasMore(state),
    timers: { set: wasResumed(before, after) ? allTimers(id, state) : work.set, cleared: work.cleared },
    refused: null,
    unhosted: details.trackers.set.map(({ topic }) => topic),
    bytes: deltaText.length + (snapshot?.length ?? 0) + 500,
    sealed: details,
  };
}

interface Written {
  readonly deltaChars: number;
  readonly snapshot: string | null;
  readonly hosted: ReadonlySet<string>;
}

function remember(
  before: Memory,
  { state, delta, swapped }: Interpreted,
  { deltaChars, snapshot, hosted }: Written,
): Memory {
  const { parsed } = before.flow;
  if (!parsed.ok) return before;
  const from = { flow: parsed.flow, tally: before.tally, nodes: before.state.nodes };
  const after: Memory = {
    flow: swapped === null ? before.flow : swapFlow(before.flow, swapped),
    key: before.key,
    parent: before.parent,
    depth: before.depth,
    isStored: true,
    state,
    tally: tallyAfter(from, { flow: swapped?.flow ?? parsed.flow, delta }),
    trackers: before.trackers,
    deltaChars: snapshot === null ? before.deltaChars + deltaChars : 0,
    snapshotChars: snapshot === null ? before.snapshotChars : snapshot.length,
  };
  const trackers = trackersOf(after, hosted);
  return trackers === before.trackers ? after : { ...after, trackers };
}

/**
 * A snapshot is written when the deltas since the last one are larger than it, so that loading never reads much more than the state. At
 * the end it is written only if there is much to fold: most executions are short.
 */
function snapshotOf({ deltaChars, snapshotChars }: Memory, state: FlowState, more: number): string | null {
  const chars = deltaChars + more;
  const limit = state.ending === null ? Math.max(minSnapshotChars, snapshotChars) : minSnapshotChars;
  return chars > limit ? JSON.stringify(state) : null;
}

/** Of a fork, and after a swap. */
function ownDocument(message: FlowMessage, { state, flow }: Memory, { swapped }: Interpreted): string | null {
  if (swapped !== null) return JSON.stringify(swapped.document);
  if (message.point !== 'launch' || state.counters.visits > 0) return null;
  return launchOf(message)?.fork === undefined ? null : JSON.stringify(flow.document);
}

function labelsOf(id: string, before: Memory, after: Memory, { nowMs }: Circumstances): RunDetails['labels'] {
  const isLaunched = before.state.counters.visits === 0 && after.state.counters.visits > 0;
  if (!isLaunched || !after.flow.parsed.ok) return [];
  return evaluateLabels(after.flow.parsed.flow, after.state.input, { id, key: after.key, nowMs });
}

const noTrackers: RunDetails['trackers'] = { set: [], cleared: [] };

function changedTrackers(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): RunDetails['trackers'] {
  if (before === after) return noTrackers;
  const added = Object.entries(after).filter(([name]) => before[name] === undefined);
  const cleared = Object.keys(before).filter((name) => after[name] === undefined);
  return { set: added.map(([name, topic]) => ({ name, topic })), cleared };
}

function wasResumed(before: Memory, after: Memory): boolean {
  return before.state.isPaused && !after.state.isPaused;
}

/** While an execution is paused, its timers are not asked for. */
function allTimers(execution: string, { nodes }: FlowState): FlowRun['timers']['set'] {
  return Object.entries(nodes).flatMap(([nid, { timers = {} }]) =>
    Object.entries(timers).map(([timer, { generation, dueMs }]) => ({
      execution,
      generation,
      dueMs,
      name: `${nid}/${timer}`,
    })),
  );
}
