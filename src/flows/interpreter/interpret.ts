/**
 * The interpreter of flows: a pure function from the state of an execution and a message to the next state, and what the world is
 * asked to do.
 *
 * 1. The same state, message and circumstances give the same result. Nothing here reads a clock, draws lots or waits.
 * 2. It never throws. A fault of our own makes the message refused, and changes nothing.
 * 3. A run ends after a number of inner messages, or when its time is over. What is left is in the state, for the message `continue`.
 * 4. A message that came before has no second effect: answers name an attempt, timers a generation, and others their id.
 * 5. While an execution is paused, it only takes operations. Other messages are kept in the state, in order.
 */
import { isObject } from '../json.ts';
import type { Flow } from '../language/step.ts';
import type { Delta } from './delta.ts';
import { Draft } from './draft.ts';
import type { Effect } from './effects.ts';
import { fork } from './forking.ts';
import { hear } from './hearing.ts';
import { operate, takeAnswer, takeTimer } from './messages.ts';
import { childEnded, enter, guard, settle } from './node-life.ts';
import { type Circumstances, flowLimits, Run } from './run.ts';
import { type FlowState, type Inner, type MessageBody, type Refusal, rootAt } from './state.ts';
import type { Swapped } from './run.ts';
import { rulesOf } from './verbs/rules.ts';

export interface FlowMessage {
  /** Of signals and operations: a message with the same id has no second effect. */
  readonly id: string;
  readonly body: MessageBody;
}

export interface Interpreted {
  readonly state: FlowState;
  readonly delta: Delta;
  readonly effects: readonly Effect[];
  /** Why the message had no effect of its own. */
  readonly refused: Refusal | { readonly code: 'internal'; readonly detail: string } | null;
  /** Whether inner messages are left. */
  readonly isMore: boolean;
  /** A document that the execution follows from now on. */
  readonly swapped: Swapped | null;
}

export function interpret(flow: Flow, state: FlowState, message: FlowMessage, how: Circumstances): Interpreted {
  try {
    return interpretMessage(flow, state, message, how);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { state, delta: {}, effects: [], refused: { code: 'internal', detail }, isMore: false, swapped: null };
  }
}

function interpretMessage(flow: Flow, state: FlowState, message: FlowMessage, how: Circumstances): Interpreted {
  const draft = new Draft(state);
  const run = new Run(flow, draft, how, rulesOf);
  const refused = isKnown(run, message) ? null : (receive(run, message.body) ?? null);
  if (refused !== null && state.left.length === 0)
    return { state, delta: {}, effects: [], refused, isMore: false, swapped: null };
  if (refused === null) noteSeen(run, message);
  if (!draft.isPaused && draft.left.length > 0) {
    run.todo.addLeft(draft.left);
    draft.left = [];
  }
  workOff(run);
  const left = run.todo.all();
  if (left.length > 0) draft.left = [...draft.left, ...left];
  const isMore = draft.left.length > 0 && !draft.isPaused && draft.ending === null;
  const { state: next, delta } = draft.finish();
  return { state: next, delta, effects: withoutVain(run.effects), refused, isMore, swapped: run.swapped };
}

/** Whether a message came before that nothing but its id makes unique. */
function isKnown({ draft }: Run, { id, body }: FlowMessage): boolean {
  return isSeenById(body) && draft.seen.some((other) => other.id === id);
}

function isSeenById({ point }: MessageBody): boolean {
  return point === 'signal' || point === 'operate';
}

function noteSeen({ draft, nowMs }: Run, { id, body }: FlowMessage): void {
  if (!isSeenById(body) || draft.seen.some((other) => other.id === id)) return;
  const recent = draft.seen.filter(({ atMs }) => atMs > nowMs - flowLimits.earlyMs);
  draft.seen = [...recent, { id, atMs: nowMs }].slice(-flowLimits.seen);
}

function receive(run: Run, body: MessageBody): Refusal | undefined {
  const { draft } = run;
  if (draft.ending !== null) return { code: 'over', detail: 'the execution has ended' };
  // what was left before comes first; a paused execution takes nothing but operations
  const isHeld = draft.isPaused ? body.point !== 'operate' : draft.left.length > 0;
  if (!isHeld || body.point === 'continue') return take(run, body);
  if (body.point === 'signal' && draft.left.length >= flowLimits.heldMessages)
    return { code: 'too_many_signals', detail: `${draft.left.length} messages wait for the execution to go on` };
  if (isHeldAlready(draft.left, body))
    return { code: 'too_late', detail: 'the same message waits for the execution to go on' };
  draft.left = [...draft.left, { do: 'take', body }];
  return undefined;
}

/** Of an attempt one answer is kept, and of a timer one message. Signals and operations are known by their ids. */
function isHeldAlready(left: readonly Inner[], body: MessageBody): boolean {
  const held = left.flatMap((message) => (message.do === 'take' ? [message.body] : []));
  if (body.point === 'answer')
    return held.some((other) => other.point === 'answer' && other.nid === body.nid && other.attempt === body.attempt);
  if (body.point !== 'timer') return false;
  return held.some(
    (other) => other.point === 'timer' && other.name === body.name && other.generation === body.generation,
  );
}

function take(run: Run, body: MessageBody): Refusal | undefined {
  switch (body.point) {
    case 'launch':
      return launch(run, body);
    case 'answer':
      return takeAnswer(run, body);
    case 'timer':
      return takeTimer(run, body.name, body.generation);
    case 'signal':
      return hear(run, body.name, body.payload);
    case 'operate':
      return operate(run, body.operation);
    case 'continue':
      return undefined;
    default:
      return body satisfies never;
  }
}

/** The fields begin as the input, if that is a mapping. A second launch has no effect. */
function launch(run: Run, body: Extract<MessageBody, { point: 'launch' }>): Refusal | undefined {
  const { draft } = run;
  if (draft.counters.visits > 0) return undefined;
  if (body.fork !== undefined) {
    if (body.fork.state.ending !== null)
      return { code: 'over', detail: 'the forked execution had ended at that revision' };
    fork(run, body.fork);
    return undefined;
  }
  const { input } = body;
  draft.input = input;
  if (isObject(input)) draft.setFields(input);
  run.start(null, rootAt);
  return undefined;
}

function workOff(run: Run): void {
  const { maxMessages } = run.how;
  for (let done = 0; done < maxMessages && !run.draft.isPaused && !run.isFull && !run.how.isSpent(); done++) {
    const next = run.todo.next();
    if (next === undefined || run.draft.ending !== null) break;
    run.refuel();
    process(run, next);
  }
  if (run.draft.ending !== null) run.todo.clear();
}

function process(run: Run, message: Inner): void {
  switch (message.do) {
    case 'enter':
      enter(run, message.nid);
      break;
    case 'ended':
      childEnded(run, message);
      break;
    case 'close':
      guard(run, message.nid, () => settle(run, message.nid, message.why));
      break;
    case 'hear':
      hear(run, message.name, message.payload);
      break;
    case 'take':
      take(run, message.body);
      break;
    default:
      message satisfies never;
  }
}

/** Timers that were set and cleared in one run never existed for the world. */
function withoutVain(effects: readonly Effect[]): readonly Effect[] {
  if (!effects.some(({ kind }) => kind === 'set_timer')) return effects;
  const last = new Map<string, number>();
  for (const [i, effect] of effects.entries())
    if (effect.kind === 'set_timer' || effect.kind === 'clear_timer') last.set(effect.name, i);
  return effects.filter((effect, i) => {
    if (effect.kind !== 'set_timer' && effect.kind !== 'clear_timer') return true;
    return last.get(effect.name) === i;
  });
}
