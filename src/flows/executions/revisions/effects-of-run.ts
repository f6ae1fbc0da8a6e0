/**
 * Turns the effects of a run of the interpreter into rows, calls and messages.
 *
 * 1. Work that was begun and stopped in one run is neither begun nor stopped. A node that waits for its end gets the answer `cancelled`.
 * 2. Ids of what is created follow from execution, node and attempt, so that nothing is created twice.
 * 3. A call of a function that this conductor does not host becomes a tracker, which another conductor finds.
 */
import type { HostedCall, TimerMark } from '../../../contract/flows.ts';
import type { Effect, TaskCall } from '../../interpreter/effects.ts';
import type { FlowNode } from '../../interpreter/state.ts';
import { isObject, type Json, type JsonObject } from '../../json.ts';
import { momentMs, durationMs } from '../../language/read-duration.ts';
import { deriveId } from './derived-id.ts';
import { isAtWork, type Memory, noTrackers } from '../memory.ts';
import type { Attempt, Child, NodeRun, Sent, WorkItem } from './run-details.ts';

export interface Change {
  readonly execution: string;
  readonly rev: number;
  readonly from: Memory;
  readonly to: Memory;
  readonly effects: readonly Effect[];
  readonly hosted: ReadonlySet<string>;
  readonly nowMs: number;
}

export interface Work {
  readonly calls: HostedCall[];
  readonly stops: string[];
  readonly set: TimerMark[];
  readonly cleared: { readonly execution: string; readonly name: string }[];
  readonly runs: NodeRun[];
  readonly stoppedRuns: Attempt[];
  readonly items: WorkItem[];
  readonly children: Child[];
  readonly messages: Sent[];
  /** What left, for the history. */
  readonly out: JsonObject[];
}

type TaskEffect = Extract<Effect, { kind: 'task' }>;
type StopEffect = Extract<Effect, { kind: 'stop' }>;
type LaunchEffect = Extract<Effect, { kind: 'launch' }>;

/** An attempt that takes longer than this is stopped, if its step has no timeout. */
const maxAttemptMs = 30 * 24 * 3_600_000;

export function collectWork(change: Change): Work {
  const { execution, effects } = change;
  const work: Work = {
    calls: [],
    stops: [],
    set: [],
    cleared: [],
    runs: [],
    stoppedRuns: [],
    items: [],
    children: [],
    messages: [],
    out: [],
  };
  const stopped = new Map<string, StopEffect>();
  for (const effect of effects) if (effect.kind === 'stop') stopped.set(keyOf(effect), effect);
  for (const effect of effects) {
    switch (effect.kind) {
      case 'task':
        if (isBegun(effect, stopped, change, work)) addTask(effect, change, work);
        break;
      case 'launch':
        if (isBegun(effect, stopped, change, work)) addChild(effect, work);
        break;
      case 'stop':
        if (stopped.has(keyOf(effect))) stop(effect, change, work);
        break;
      case 'set_timer': {
        const { name, generation, dueMs } = effect;
        work.set.push({ execution, name, generation, dueMs });
        break;
      }
      case 'clear_timer':
        work.cleared.push({ execution, name: effect.name });
        break;
      case 'signal':
        addSignal(effect, change, work);
        break;
      default:
        effect satisfies never;
    }
  }
  addHosted(change, work);
  return work;
}

/** Functions that this conductor hosts, and that were not hosted when they were called. */
function addHosted({ execution, from, to, hosted }: Change, { calls }: Work): void {
  if (from.trackers === noTrackers) return;
  for (const [nid, node] of Object.entries(to.state.nodes)) {
    const name = from.trackers[`${nid}/${node.attempt}`];
    if (name === undefined || !hosted.has(name) || node.phase !== 'run' || !isAtWork(node)) continue;
    const input = node.memory?.['input'] ?? null;
    calls.push(callOf(execution, to, { nid, attempt: node.attempt, name, input }));
  }
}

function keyOf({ nid, attempt }: Attempt): string {
  return `${nid}/${attempt}`;
}

/** The function is called with this key, however often. */
function callKey(execution: string, { nid, attempt }: Attempt): string {
  return `${execution}/${nid}/${attempt}`;
}

export function answerId({ nid, attempt }: Attempt): string {
  return `answer/${nid}/${attempt}`;
}

/** Whether the work outlasts this run. If not, a node that waits for its end is told. */
function isBegun(effect: TaskEffect | LaunchEffect, stopped: Map<string, StopEffect>, change: Change, work: Work) {
  const key = keyOf(effect);
  if (!stopped.delete(key)) return true;
  answerCancelled(effect, change, work);
  return false;
}

/** A node that closes and waits for the end of its work gets it from here. */
function answerCancelled({ nid, attempt }: Attempt, { execution, to }: Change, { messages }: Work): void {
  const node = to.state.nodes[nid];
  if (node === undefined || node.phase !== 'close' || !isAtWork(node)) return;
  const body = { point: 'answer', nid, attempt, outcome: { kind: 'cancelled' } };
  messages.push({ execution, id: answerId({ nid, attempt }), point: 'answer', body });
}

function addTask(effect: TaskEffect, change: Change, work: Work): void {
  const { nid, attempt, name, work: kind } = effect;
  work.out.push({ kind: 'task', node: nid, attempt, name, by: kind.kind === 'run' ? kind.runtime : kind.kind });
  if (kind.kind === 'hosted') {
    if (change.hosted.has(name)) work.calls.push(callOf(change.execution, change.to, effect));
  } else if (kind.kind === 'run') work.runs.push(runOf(effect, kind, change));
  else work.items.push(itemOf(effect, kind, change));
}

export function callOf(
  execution: string,
  { flow }: Memory,
  { nid, attempt, name, input }: Pick<TaskCall, 'nid' | 'attempt' | 'name' | 'input'>,
): HostedCall {
  return { key: callKey(execution, { nid, attempt }), execution, nid, attempt, name, input, flow: flow.name };
}

function runOf({ nid, attempt, name, input }: TaskEffect, work: NodeRun['work'], { to, nowMs }: Change): NodeRun {
  const dueMs = to.state.nodes[nid]?.timers?.['timeout']?.dueMs;
  const timeoutMs = dueMs === undefined ? maxAttemptMs : Math.max(1, dueMs - nowMs);
  return { nid, attempt, name, input, timeoutMs, work };
}

function itemOf(
  { nid, attempt, name, input }: TaskEffect,
  { item }: Extract<TaskCall['work'], { kind: 'human' }>,
  { execution, nowMs }: Change,
): WorkItem {
  const id = deriveId(nowMs, `item ${callKey(execution, { nid, attempt })}`);
  return { id, nid, attempt, name, input, item, dueMs: dueOf(item['due'], nowMs) };
}

/** Only shown, so a value that is no time is left out. */
function dueOf(due: Json | undefined, nowMs: number): number | null {
  if (due === undefined || due === null) return null;
  for (const read of [(value: Json) => nowMs + durationMs(value), momentMs]) {
    try {
      return read(due);
    } catch {
      // it is not of this form
    }
  }
  return null;
}

function addChild({ id, nid, attempt, flow, isDetached, input }: LaunchEffect, work: Work): void {
  work.children.push({ id, nid, attempt, flow, isDetached, input });
  work.out.push({ kind: 'call', node: nid, attempt, flow, execution: id, detached: isDetached });
}

function addSignal(effect: Extract<Effect, { kind: 'signal' }>, { execution, rev }: Change, work: Work): void {
  const { to, name, payload } = effect;
  const id = `${execution}/${rev}/${work.messages.length}`;
  work.messages.push({ execution: to, id, point: 'signal', body: { point: 'signal', name, payload } });
  work.out.push({ kind: 'signal', to, name });
}

function stop(effect: StopEffect, change: Change, work: Work): void {
  const { nid, attempt, isKill } = effect;
  const { from, to, execution, rev, hosted } = change;
  const node = from.state.nodes[nid] ?? to.state.nodes[nid];
  const step = node === undefined || !from.flow.parsed.ok ? undefined : from.flow.parsed.flow.byPosition.get(node.at);
  work.out.push({ kind: 'stop', node: nid, attempt });
  if (step?.verb === 'call') {
    const child = childOf(node);
    if (child === undefined) return;
    const operation = { action: isKill ? 'kill' : 'cancel', nid: null };
    const id = `${execution}/${rev}/${work.messages.length}`;
    work.messages.push({ execution: child, id, point: 'operate', body: { point: 'operate', operation } });
  } else if (step?.verb === 'task' && step.work.kind === 'run') work.stoppedRuns.push({ nid, attempt });
  else if (step?.verb === 'task' && step.work.kind === 'hosted') {
    if (hosted.has(step.name)) work.stops.push(callKey(execution, { nid, attempt }));
    else answerCancelled({ nid, attempt }, change, work);
  }
}

/** The execution that a `call` has launched. */
function childOf(node: FlowNode | undefined): string | undefined {
  const call = node?.memory?.['call'];
  return typeof call === 'string' ? call : undefined;
}

/** Functions that are wanted, and that this conductor does not host. */
export function trackersOf(
  { flow, state, tally }: Memory,
  hosted: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  if (tally.calls === 0 || !flow.parsed.ok) return noTrackers;
  const trackers: Record<string, string> = {};
  for (const [nid, node] of Object.entries(state.nodes)) {
    if (node.phase !== 'run' || !isAtWork(node)) continue;
    const step = flow.parsed.flow.byPosition.get(node.at);
    if (step?.verb !== 'task' || step.work.kind !== 'hosted' || hosted.has(step.name)) continue;
    trackers[`${nid}/${node.attempt}`] = step.name;
  }
  return Object.keys(trackers).length === 0 ? noTrackers : trackers;
}

/** Items of people whose answers are not waited for any longer. */
export function endedItems(from: Memory, to: Memory, changed: Iterable<string>): Attempt[] {
  if (!from.flow.parsed.ok) return [];
  const { byPosition } = from.flow.parsed.flow;
  const ended: Attempt[] = [];
  for (const nid of changed) {
    const before = from.state.nodes[nid];
    if (before === undefined || !isAtWork(before)) continue;
    const step = byPosition.get(before.at);
    if (step?.verb !== 'task' || step.work.kind !== 'human') continue;
    const after = to.state.nodes[nid];
    if (after === undefined || after.attempt !== before.attempt || !isAtWork(after))
      ended.push({ nid, attempt: before.attempt });
  }
  return ended;
}

export function formOf(item: JsonObject): JsonObject {
  const { form = null } = item;
  return isObject(form) ? form : {};
}
