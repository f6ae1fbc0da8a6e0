/** What messages from outside do: answers of tasks, timers, and the operations of people. */
import { setResult } from './fields.ts';
import { finish, guard, retry, settle, workEnded } from './node-life.ts';
import { checkSize, type Run } from './run.ts';
import { swap } from './swapping.ts';
import type { Operation, Refusal, TaskAnswer } from './state.ts';

function refuse(code: Refusal['code'], detail: string): Refusal {
  return { code, detail };
}

/** The first answer to an attempt counts. */
export function takeAnswer(run: Run, { nid, attempt, outcome }: TaskAnswer): Refusal | undefined {
  const node = run.draft.node(nid);
  if (node === undefined) return refuse('too_late', 'the step has ended');
  if (node.attempt !== attempt) return refuse('too_late', 'it is the answer to another attempt');
  if (node.phase === 'close') {
    workEnded(run, nid);
    return undefined;
  }
  if (node.phase !== 'run' || run.memory(nid)['isSent'] !== true)
    return refuse('too_late', 'the step does not wait for an answer');
  run.remember(nid, { isSent: false });
  guard(run, nid, () => {
    if (outcome.kind === 'done') run.complete(nid, outcome.result);
    else if (outcome.kind === 'cancelled') settle(run, nid, { kind: 'cancel' });
    else {
      const { code, message, data } = outcome;
      checkSize(data);
      settle(run, nid, { kind: 'failed', error: { code, message, data, node: nid, isFinal: false } });
    }
  });
  return undefined;
}

/** A timer takes effect if the node still has it, and never early. */
export function takeTimer(run: Run, name: string, generation: number): Refusal | undefined {
  const slash = name.lastIndexOf('/');
  const [nid, timer] = [name.slice(0, slash), name.slice(slash + 1)];
  const node = run.draft.node(nid);
  const state = node?.timers?.[timer];
  if (node === undefined || state === undefined || state.generation !== generation)
    return refuse('too_late', 'the timer was cleared');
  if (state.dueMs > run.nowMs) return refuse('too_early', 'the timer is not due yet');
  run.disarm(nid, [timer]);
  if (timer === 'timeout') {
    settleTimeout(run, nid);
    return undefined;
  }
  if (timer === 'retry') retry(run, nid);
  else if (timer === 'grace') workEnded(run, nid);
  else if (node.phase === 'run') {
    guard(run, nid, () => {
      const step = run.stepAt(node.at);
      run.rules(step).ticked?.(run, nid, step, { name: timer, plannedMs: state.plannedMs ?? state.dueMs });
    });
  }
  return undefined;
}

/** A failure that is being closed may still become a timeout, because the timeout bounds all attempts. */
function settleTimeout(run: Run, nid: string): void {
  const node = run.draft.node(nid);
  if (node?.phase === 'close' || node?.phase === 'undo') run.draft.patch(nid, { why: { kind: 'timeout' } });
  else settle(run, nid, { kind: 'timeout' });
}

export function operate(run: Run, operation: Operation): Refusal | undefined {
  switch (operation.action) {
    case 'cancel':
    case 'kill': {
      const nid = operation.nid ?? rootOf(run);
      // it was accepted and not launched yet
      if (nid === undefined && run.draft.counters.visits === 0) {
        run.draft.ending = { kind: 'cancelled' };
        return undefined;
      }
      if (nid === undefined || run.draft.node(nid) === undefined) return missing(operation.nid);
      // what ends an execution ends its pause
      if (operation.nid === null) run.draft.isPaused = false;
      settle(run, nid, { kind: operation.action });
      return undefined;
    }
    case 'retry':
      return retryIncident(run, operation.nid);
    case 'skip':
      return skip(run, operation);
    case 'swap':
      return swap(run, operation);
    case 'fields':
      run.draft.setFields(operation.fields);
      return undefined;
    case 'pause':
      if (run.draft.isPaused) return refuse('paused', 'the execution is paused already');
      run.draft.isPaused = true;
      return undefined;
    case 'resume':
      if (!run.draft.isPaused) return refuse('not_paused', 'the execution is not paused');
      run.draft.isPaused = false;
      return undefined;
    default:
      return operation satisfies never;
  }
}

function rootOf(run: Run): string | undefined {
  return Object.entries(run.draft.nodes).find(([, { parent }]) => parent === null)?.[0];
}

function missing(nid: string | null): Refusal {
  return refuse('no_such_node', nid === null ? 'the execution has no nodes' : `there is no node ${nid}`);
}

function retryIncident(run: Run, nid: string): Refusal | undefined {
  const node = run.draft.node(nid);
  if (node === undefined) return missing(nid);
  if (node.phase !== 'incident' && node.phase !== 'backoff')
    return refuse('no_incident', 'only a step that has failed can be retried');
  retry(run, nid);
  return undefined;
}

/** Ends a node with a result as if its step had given it. */
function skip(run: Run, { nid, result }: Extract<Operation, { action: 'skip' }>): Refusal | undefined {
  const node = run.draft.node(nid);
  if (node === undefined) return missing(nid);
  if (node.phase === 'incident') {
    setResult(run.draft, nid, result);
    finish(run, nid, { kind: 'done' });
    return undefined;
  }
  if (node.phase !== 'run' && node.phase !== 'backoff')
    return refuse('no_incident', 'the step is being closed already');
  setResult(run.draft, nid, result);
  settle(run, nid, { kind: 'done' });
  return undefined;
}
