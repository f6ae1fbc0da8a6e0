/**
 * Interprets one message: the next revision of an execution in memory, and all that its commit writes. Pure, and never throws.
 *
 * A message that changes nothing leaves the execution as it is: its commit only deletes the message from the inbox. The message `continue`
 * always makes a revision, so that a new owner can take over an execution in which nothing happens.
 */
import type { FlowMessage } from '../../contract/flow-messages.ts';
import type { Circumstances, Execution, FlowRun } from '../../contract/flows.ts';
import type { Delta } from '../interpreter/delta.ts';
import { interpret, type Interpreted } from '../interpreter/interpret.ts';
import type { FlowState, MessageBody } from '../interpreter/state.ts';
import type { Json, JsonObject } from '../json.ts';
import type { Flow } from '../language/step.ts';
import { deriveId } from './derived-id.ts';
import { type Change, collectWork, endedItems, trackersOf, type Work } from './effects-of-run.ts';
import { eventsOfRun } from './events-of-run.ts';
import { evaluateLabels } from './labels.ts';
import { bytesOf, type Memory, memoryOf, hasMore, tallyAfter } from './memory.ts';
import { readBody } from './read-message.ts';
import { noDetails, type RunDetails } from './run-details.ts';
import { answerParent } from './answer-parent.ts';

/** Deltas of so many characters are read without a snapshot. */
export const minSnapshotChars = 16 * 1024;

export function execute(execution: Execution, message: FlowMessage, how: Circumstances): FlowRun {
  const { parsed } = memoryOf(execution).flow;
  if (!parsed.ok) return refuse(execution, message, { code: 'unreadable', detail: parsed.detail });
  const body = readBody(message);
  if (body === undefined)
    return refuse(execution, message, {
      code: 'bad_message',
      detail: `it is not a message of the kind ${message.point}`,
    });
  const result = interpretFor(execution, parsed.flow, { id: message.id, body }, how);
  if (result.refused !== null) return refuse(execution, message, result.refused);
  if (isIdle(result, body)) return refuse(execution, message, null);
  return commitOf(execution, message, { body, result, how });
}

/** The message has no effect. */
function refuse(execution: Execution, message: FlowMessage, refused: FlowRun['refused']): FlowRun {
  const timers = { set: [], cleared: [] };
  return {
    from: execution,
    to: execution,
    message,
    calls: [],
    stops: [],
    timers,
    refused,
    sealed: noDetails,
    more: hasMore(memoryOf(execution).state),
  };
}

function isIdle({ delta, effects }: Interpreted, { point }: MessageBody): boolean {
  return point !== 'continue' && effects.length === 0 && Object.keys(delta).length === 0;
}

function interpretFor(
  { id, sealed }: Execution,
  flow: Flow,
  message: { readonly id: string; readonly body: MessageBody },
  how: Circumstances,
): Interpreted {
  const { state, key, depth } = sealed as Memory;
  return interpret(flow, state, message, {
    nowMs: how.nowMs,
    seed: how.seed,
    execution: { id, key },
    depth,
    maxMessages: how.maxMessages,
    isSpent: () => how.isSpent(),
    link: (nid, attempt) => how.link({ execution: id, nid, attempt }),
    newId: (nid, attempt) => deriveId(how.nowMs, `${id}/${nid}/${attempt}`),
  });
}

interface Result {
  readonly body: MessageBody;
  readonly result: Interpreted;
  readonly how: Circumstances;
}

function commitOf(execution: Execution, message: FlowMessage, { body, result, how }: Result): FlowRun {
  const before = memoryOf(execution);
  const { state, delta, effects } = result;
  const deltaText = JSON.stringify(delta);
  const snapshot = snapshotOf(before, state, deltaText.length);
  const base = remember(before, { state, delta, deltaChars: deltaText.length, snapshot });
  const trackers = trackersOf(base, how.hosted);
  const after: Memory = { ...base, trackers };
  const { id, rev } = execution;
  const change: Change = {
    execution: id,
    rev: rev + 1,
    from: before,
    to: after,
    effects,
    hosted: how.hosted,
    nowMs: how.nowMs,
  };
  const work = collectWork(change);
  const over = state.ending !== null;
  const to = { ...execution, rev: rev + 1, over, bytes: bytesOf(after), sealed: after };
  const items = endedItems(before, after, Object.keys(delta.nodes ?? {}));
  const entry = { message: JSON.stringify(summaryOf(message, body, before)), delta: deltaText, out: textOfOut(work) };
  const details: RunDetails = {
    entry,
    snapshot,
    runs: work.runs,
    stoppedRuns: work.stoppedRuns,
    items: work.items,
    children: work.children,
    endedItems: items,
    labels: labelsOf(id, before, after, how),
    trackers: changedTrackers(before.trackers, trackers),
    messages: [...work.messages, ...answerParent(after)],
    events: eventsOfRun({ message, before, after, work, endedItems: items }),
  };
  const { calls, stops, set, cleared } = work;
  const timers = { set: wasResumed(before, after) ? allTimers(id, state) : set, cleared };
  return { from: execution, to, message, calls, stops, more: hasMore(state), timers, refused: null, sealed: details };
}

interface Changed {
  readonly state: FlowState;
  readonly delta: Delta;
  readonly deltaChars: number;
  readonly snapshot: string | null;
}

function remember(before: Memory, { state, delta, deltaChars, snapshot }: Changed): Memory {
  const { parsed } = before.flow;
  if (!parsed.ok) return before;
  const { flow } = parsed;
  const tally = tallyAfter({ flow, tally: before.tally, nodes: before.state.nodes }, { flow, delta });
  return {
    ...before,
    isStored: true,
    state,
    tally,
    deltaChars: snapshot === null ? before.deltaChars + deltaChars : 0,
    snapshotChars: snapshot === null ? before.snapshotChars : snapshot.length,
  };
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

function labelsOf(id: string, before: Memory, after: Memory, { nowMs }: Circumstances): RunDetails['labels'] {
  const isLaunched = before.state.counters.visits === 0 && after.state.counters.visits > 0;
  if (!isLaunched || !after.flow.parsed.ok) return [];
  return evaluateLabels(after.flow.parsed.flow, after.state.input, { id, key: after.key, nowMs });
}

function changedTrackers(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): RunDetails['trackers'] {
  const added = Object.entries(after).filter(([name]) => before[name] === undefined);
  const cleared = Object.keys(before).filter((name) => after[name] === undefined);
  return { set: added.map(([name, topic]) => ({ name, topic })), cleared };
}

/** What the history says about the message. Its values are in the delta. */
function summaryOf({ id, bornMs }: FlowMessage, body: MessageBody, { state }: Memory): JsonObject {
  const base = { id, point: body.point, born: bornMs };
  switch (body.point) {
    case 'answer':
      return { ...base, nid: body.nid, attempt: body.attempt, outcome: body.outcome.kind };
    case 'timer': {
      const slash = body.name.lastIndexOf('/');
      const nid = body.name.slice(0, slash);
      const timer = state.nodes[nid]?.timers?.[body.name.slice(slash + 1)];
      return { ...base, nid, timer: body.name, planned: timer?.plannedMs ?? timer?.dueMs ?? null };
    }
    case 'signal':
      return { ...base, name: body.name };
    case 'operate': {
      const { operation } = body;
      const nid: Json = 'nid' in operation ? operation.nid : null;
      return { ...base, action: operation.action, ...(nid !== null && { nid }) };
    }
    case 'launch':
    case 'continue':
      return base;
    default:
      return body satisfies never;
  }
}

function textOfOut({ out }: Work): string {
  return out.length === 0 ? '[]' : JSON.stringify(out);
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
