/**
 * The life of a node, from entering its step to telling its parent: `when`, `vars`, `timeout`, `retry`, `undo`, `on_error`,
 * `on_timeout` and `on_cancel`. The phases are described in `state.ts`.
 *
 * 1. From the inside out: attempts, retry, timeout, handlers. A timeout bounds all attempts together.
 * 2. A node that has accepted a cancellation begins nothing but its own compensations and `on_cancel`.
 * 3. A node that fails, times out or is cancelled first compensates what was completed inside, the last first. A killed one does not.
 * 4. A failure goes up to the nearest step with a retry or a handler that fits. If there is none, the node becomes an incident at once,
 *    where it failed, and everything around it stays as it is.
 */
import type { Compiled } from '../expression/expression.ts';
import type { Json } from '../json.ts';
import type { ErrorHandler, Retry, Step } from '../language/step.ts';
import { announce } from './hearing.ts';
import { dropUndo, keepUndo, takeUndo } from './compensations.ts';
import { assign, mergeFields, resultOf, setResult } from './fields.ts';
import { asObject, type ChildEnd, errorFacts, failureOf, type Run } from './run.ts';
import type { FlowError, FlowNode, Inner, Outcome, Why } from './state.ts';
import { hasEnter } from './todo.ts';

/** Runs what may fail on behalf of a node. */
export function guard(run: Run, nid: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    settle(run, nid, { kind: 'failed', error: failureOf(error, nid) });
  }
}

export function enter(run: Run, nid: string): void {
  const node = run.draft.node(nid);
  if (node === undefined || node.phase !== 'run') return;
  guard(run, nid, () => {
    const step = run.stepAt(node.at);
    if (step.when !== null && !run.holds(node.parent, step.when)) {
      finish(run, nid, { kind: 'done' }, { isSkipped: true });
      return;
    }
    armTimeout(run, nid, step);
    begin(run, nid, step);
    if (step.tag !== null) announce(run, 'entered', step.tag);
  });
}

function armTimeout(run: Run, nid: string, { timeout }: Step): void {
  if (timeout !== null) run.arm(nid, 'timeout', run.nowMs + run.evaluateDuration(nid, timeout));
}

/** Begins an attempt. What a failed one has set is forgotten. */
function begin(run: Run, nid: string, step: Step): void {
  const node = run.draft.node(nid);
  const parent = node?.parent ?? null;
  if (step.vars !== null) run.draft.patch(nid, { vars: asObject(run.evaluate(parent, step.vars), 'vars') });
  if (node !== undefined && step.retry !== null && node.role !== 'undo' && isComposite(step))
    run.draft.patch(nid, { frame: { f: {}, ret: isBranch(run, node) ? null : resultOf(run.draft, parent) } });
  run.rules(step).execute(run, nid, step);
}

function isComposite({ verb }: Step): boolean {
  return verb !== 'task' && verb !== 'call' && verb !== 'wait' && verb !== 'set';
}

/** A child has ended. */
export function childEnded(run: Run, message: Extract<Inner, { do: 'ended' }>): void {
  const { parent: nid, outcome } = message;
  const node = run.draft.node(nid);
  if (node === undefined) return;
  switch (node.phase) {
    case 'run':
      if (outcome.kind === 'failed') settle(run, nid, { kind: 'failed', error: outcome.error });
      else if (message.role === 'main') tellVerb(run, nid, node, { ...message, kind: outcome.kind });
      break;
    case 'close':
      if (node.children.length === 0) closed(run, nid);
      break;
    // several children may have ended together: the others have been counted already
    case 'undo':
      if (message.role === 'undo') closed(run, nid);
      break;
    case 'handle':
      if (message.role === 'handler') handled(run, nid, node, outcome);
      break;
    case 'backoff':
    case 'incident':
      break;
    default:
      node.phase satisfies never;
  }
}

function tellVerb(run: Run, nid: string, node: FlowNode, child: ChildEnd): void {
  guard(run, nid, () => {
    const step = run.stepAt(node.at);
    run.rules(step).ended?.(run, nid, step, child);
  });
}

/** Closes a node, for what follows from `why`. */
export function settle(run: Run, nid: string, why: Why): void {
  const node = run.draft.node(nid);
  if (node === undefined) return;
  const reason = strongest(node, why);
  if (reason === undefined) return;
  if (isUnentered(run, nid)) {
    finish(run, nid, { kind: reason.kind === 'left' ? 'left' : 'cancelled' }, { isSkipped: true });
    return;
  }
  // compensations go on whatever comes, unless they are killed
  if (node.phase === 'undo' && reason.kind !== 'kill') {
    run.disarm(nid);
    run.draft.patch(nid, { why: reason });
    return;
  }
  // what was skipped or killed is not waited for
  const isKill = reason.kind === 'kill' || reason.kind === 'done';
  // a timeout bounds all attempts, also those after this failure
  run.disarm(
    nid,
    reason.kind === 'failed' ? Object.keys(node.timers ?? {}).filter((name) => name !== 'timeout') : undefined,
  );
  run.draft.put(nid, { ...withoutError(run.draft.node(nid) ?? node), phase: 'close', why: reason });
  if (isKill && run.memory(nid)['isAwaited'] === true) run.remember(nid, { isAwaited: false });
  const isAwaited = node.phase === 'run' && closeVerb(run, nid, node, isKill);
  for (const child of node.children) run.close(child, whyOfChild(reason, child));
  if (isAwaited) run.remember(nid, { isAwaited: true });
  else if (node.children.length === 0) closed(run, nid);
}

/** A step that has not begun needs no handler. */
function isUnentered(run: Run, nid: string): boolean {
  return run.todo.isEntering(nid) || hasEnter(run.draft.left, nid);
}

function withoutError(node: FlowNode): FlowNode {
  if (node.error === undefined) return node;
  const { error: _, ...rest } = node;
  return rest;
}

function closeVerb(run: Run, nid: string, { at }: FlowNode, isKill: boolean): boolean {
  const step = run.flow.byPosition.get(at);
  return step !== undefined && run.rules(step).close?.(run, nid, step, isKill) === true;
}

/** Undefined: the node is closing for a reason that this one does not change. */
function strongest(node: FlowNode, why: Why): Why | undefined {
  if (node.phase === 'run' || node.phase === 'backoff' || node.phase === 'incident') return why;
  const present = node.why?.kind;
  if (why.kind === 'kill') return present === 'kill' ? undefined : why;
  if (why.kind !== 'cancel' && why.kind !== 'left') return undefined;
  // compensations go on, and what is done stays done
  if (present === 'failed' || present === 'timeout') return why;
  return undefined;
}

function whyOfChild(why: Why, child: string): Why {
  if (why.kind === 'kill') return why;
  return why.kind === 'left' && why.path.includes(child) ? why : { kind: 'cancel' };
}

/** The work outside of an execution has ended, or is not waited for any longer. */
export function workEnded(run: Run, nid: string): void {
  const node = run.draft.node(nid);
  if (node?.phase !== 'close' || run.memory(nid)['isAwaited'] !== true) return;
  run.remember(nid, { isAwaited: false });
  run.disarm(nid, ['grace']);
  if (node.children.length === 0) closed(run, nid);
}

/** Nothing inside a node is at work any more. */
function closed(run: Run, nid: string): void {
  const node = run.draft.node(nid);
  if (node === undefined || run.memory(nid)['isAwaited'] === true) return;
  const why = node.why ?? { kind: 'cancel' };
  if (why.kind === 'done' || why.kind === 'left' || why.kind === 'kill') {
    finish(run, nid, { kind: why.kind === 'kill' ? 'cancelled' : why.kind });
    return;
  }
  const entry = node.undo?.at(-1);
  if (entry === undefined) {
    react(run, nid, node, why);
    return;
  }
  run.draft.patch(nid, { phase: 'undo', undo: node.undo?.slice(0, -1) ?? [] });
  run.start(nid, entry.at, { role: 'undo', ...takeUndo(run.draft, entry) });
}

/** Everything inside is closed and compensated. */
function react(run: Run, nid: string, node: FlowNode, why: Why): void {
  const step = run.flow.byPosition.get(node.at);
  if (step === undefined) finish(run, nid, { kind: 'cancelled' });
  else if (why.kind === 'failed') reactToFailure(run, nid, step, why.error);
  else if (why.kind === 'timeout') reactToTimeout(run, nid, step);
  else if (step.onCancel !== null) handle(run, nid, step.onCancel, {});
  else finish(run, nid, { kind: 'cancelled' });
}

function reactToFailure(run: Run, nid: string, step: Step, error: FlowError): void {
  const node = run.draft.node(nid);
  if (node === undefined) return;
  if (step.retry !== null && mayRetry(step.retry, node.attempt, error)) {
    const { why: _, ...rest } = node;
    run.draft.put(nid, { ...rest, phase: 'backoff' });
    run.arm(nid, 'retry', run.nowMs + pauseMs(run, step.retry, node.attempt));
    return;
  }
  run.disarm(nid);
  const handler = findHandler(run, nid, step.onError, error);
  if (handler !== undefined) handle(run, nid, handler.block, { err: errorFacts(error) });
  else raise(run, nid, error);
}

function reactToTimeout(run: Run, nid: string, step: Step): void {
  if (step.onTimeout !== null) {
    handle(run, nid, step.onTimeout, {});
    return;
  }
  const message = 'the step took longer than its timeout';
  const error = { code: 'timeout', message, data: null, node: nid, isFinal: false };
  const handler = findHandler(run, nid, step.onError, error);
  if (handler !== undefined) handle(run, nid, handler.block, { err: errorFacts(error) });
  else raise(run, nid, error);
}

function handle(run: Run, nid: string, block: Step, locals: Readonly<Record<string, Json>>): void {
  run.draft.patch(nid, { phase: 'handle' });
  run.start(nid, block.at, { role: 'handler', locals });
}

function handled(run: Run, nid: string, node: FlowNode, outcome: Outcome): void {
  const isCancel = node.why?.kind === 'cancel';
  if (outcome.kind === 'failed') raise(run, nid, outcome.error);
  else if (isCancel || outcome.kind === 'cancelled') finish(run, nid, { kind: 'cancelled' });
  else finish(run, nid, { kind: outcome.kind });
}

/** The pause is over. */
export function retry(run: Run, nid: string): void {
  const node = run.draft.node(nid);
  if (node === undefined || (node.phase !== 'backoff' && node.phase !== 'incident')) return;
  const { memory: _, why: __, error: ___, ...rest } = node;
  run.draft.put(nid, { ...rest, phase: 'run', attempt: node.attempt + 1 });
  run.disarm(nid, ['retry']);
  guard(run, nid, () => {
    const step = run.stepAt(node.at);
    dropStored(run, nid, step);
    // a person tries it again: it has its time once more
    if (node.timers?.['timeout'] === undefined) armTimeout(run, nid, step);
    begin(run, nid, step);
  });
}

/** Items and results of branches. */
function dropStored(run: Run, nid: string, { verb }: Step): void {
  if (verb === 'parallel' || verb === 'each') run.draft.dropAll(`${nid}.`);
}

function mayRetry(retry: Retry, attempt: number, error: FlowError): boolean {
  if (attempt >= retry.maxAttempts) return false;
  if (retry.on === null) return true;
  return retry.on.includes(error.code) || (retry.on.includes('error') && error.code !== 'timeout');
}

function pauseMs(run: Run, retry: Retry, attempt: number): number {
  const full = Math.min(retry.capMs ?? Number.POSITIVE_INFINITY, retry.delayMs * retry.factor ** (attempt - 1));
  return full * (1 - retry.jitter * run.random());
}

function findHandler(
  run: Run,
  nid: string,
  handlers: readonly ErrorHandler[],
  error: FlowError,
): ErrorHandler | undefined {
  return handlers.find(({ match }) => {
    if (match === null) return true;
    if ('codes' in match) return match.codes.includes(error.code);
    return matchesError(run, nid, match.condition, error);
  });
}

/** A condition that cannot be evaluated does not match. */
function matchesError(run: Run, nid: string, condition: Compiled, error: FlowError): boolean {
  try {
    return run.holds(nid, condition, { err: errorFacts(error) });
  } catch (caught) {
    failureOf(caught, nid);
    return false;
  }
}

/** A node has failed, and none of its own attempts or handlers is left. */
function raise(run: Run, nid: string, error: FlowError): void {
  const found = lookUp(run, nid, error);
  if (found === 'handled' || (found === 'nobody' && (error.isFinal || isRoot(run, nid)))) {
    finish(run, nid, { kind: 'failed', error });
    return;
  }
  const node = run.draft.node(nid);
  if (node === undefined) return;
  run.disarm(nid);
  const { why: _, timers: __, ...rest } = run.draft.node(nid) ?? node;
  run.draft.put(nid, { ...rest, phase: 'incident', error });
}

function isRoot(run: Run, nid: string): boolean {
  return run.draft.node(nid)?.parent === null;
}

/** Who around a failed node takes the failure. `blocked`: a compensation or `on_cancel` around it, which must not fail. */
function lookUp(run: Run, nid: string, error: FlowError): 'handled' | 'nobody' | 'blocked' {
  let child = run.draft.node(nid);
  for (let at = child?.parent ?? null; at !== null && child !== undefined; ) {
    const node = run.draft.node(at);
    if (node === undefined) return 'nobody';
    const step = run.flow.byPosition.get(node.at);
    if (child.role === 'undo' || (child.role === 'handler' && node.why?.kind === 'cancel')) return 'blocked';
    if (node.phase === 'run' && step !== undefined) {
      if (step.retry !== null && mayRetry(step.retry, node.attempt, error)) return 'handled';
      if (findHandler(run, at, step.onError, error) !== undefined) return 'handled';
    }
    child = node;
    at = node.parent;
  }
  return 'nobody';
}

/** Ends a node: keeps its result, hands its compensations on, removes it, and tells its parent. */
export function finish(run: Run, nid: string, outcome: Outcome, how: { readonly isSkipped?: boolean } = {}): void {
  const node = run.draft.node(nid);
  if (node === undefined) return;
  const { at, parent, role, locals } = node;
  const step = run.flow.byPosition.get(at);
  const isKept = outcome.kind === 'done' || outcome.kind === 'left';
  if (isKept && step !== undefined && how.isSkipped !== true) keepAttempt(run, nid, node, step);
  if (outcome.kind === 'done' && step !== undefined && how.isSkipped !== true) keepResult(run, nid, node, step);
  // with its own result, if it is a branch
  const { undo = [], frame } = run.draft.node(nid) ?? node;
  const own = outcome.kind === 'done' && step?.undo && how.isSkipped !== true ? [keepUndo(run, nid, step.undo)] : [];
  if (how.isSkipped !== true) run.draft.noteEnd(at, outcome.kind);
  else if (outcome.kind === 'done') run.draft.noteEnd(at, 'skipped');
  run.disarm(nid);
  if (step !== undefined) dropStored(run, nid, step);
  run.draft.remove(nid);
  const entries = isKept && parent !== null ? [...undo, ...own] : [];
  if (entries.length === 0) dropUndo(run.draft, [...undo, ...own]);
  if (parent === null) end(run, outcome);
  else {
    const around = run.draft.node(parent);
    run.draft.patch(parent, {
      children: around?.children.filter((child) => child !== nid) ?? [],
      ...(entries.length > 0 && { undo: [...(around?.undo ?? []), ...entries] }),
    });
    run.todo.add({ do: 'ended', parent, nid, at, role, outcome, frame: frame ?? null, locals: locals ?? null });
  }
  if (step?.tag && how.isSkipped !== true) announce(run, 'left', step.tag);
}

/** What the last attempt has set is seen by the steps after it. */
function keepAttempt(run: Run, nid: string, node: FlowNode, step: Step): void {
  if (step.retry === null || node.frame === undefined || !isComposite(step) || isBranch(run, node)) return;
  mergeFields(run.draft, node.parent, node.frame.f);
  setResult(run.draft, node.parent, node.frame.ret);
  const { frame: _, ...rest } = run.draft.node(nid) ?? node;
  run.draft.put(nid, rest);
}

function keepResult(run: Run, nid: string, node: FlowNode, step: Step): void {
  if (step.result === null) return;
  // its own variables end with it
  const owner = step.result.root === 'v' ? (node.parent ?? nid) : nid;
  assign(run.draft, owner, step.result, run.resultOf(nid));
}

/** The fields of a branch are merged by the step around it. */
function isBranch(run: Run, { parent, role }: FlowNode): boolean {
  const around = parent === null ? undefined : run.draft.node(parent);
  return role === 'main' && around !== undefined && run.flow.byPosition.get(around.at)?.verb === 'parallel';
}

/** The root has ended, and the execution with it. */
function end(run: Run, outcome: Outcome): void {
  if (outcome.kind === 'failed') run.draft.ending = outcome;
  else run.draft.ending = { kind: outcome.kind === 'cancelled' ? 'cancelled' : 'done' };
  if (run.draft.early.length > 0) run.draft.early = [];
}
