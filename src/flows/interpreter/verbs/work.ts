/** Verbs that have work done elsewhere: `task` and `call`. Their answers come as messages (`answers.ts`). */
import type { Compiled } from '../../expression/expression.ts';
import type { CallStep, TaskStep } from '../../language/step.ts';
import { checkSize, flowLimits, type Run, StepFailure, type VerbRules } from '../run.ts';
import { workOf } from './task-work.ts';

/** How long a cancelled task may take to stop. Later its node closes without its answer. */
const graceMs = 30_000;
const callbackTimer = 'callback';

export const task: VerbRules<TaskStep> = {
  execute(run, nid, step) {
    const input = run.evaluate(nid, step.input);
    checkSize(input);
    const attempt = run.draft.node(nid)?.attempt ?? 1;
    const work = workOf(run, nid, step);
    const callback = callbackOf(step);
    const callbackMs = callback === null ? null : run.evaluateDuration(nid, callback);
    run.effects.push({ kind: 'task', nid, attempt, name: step.name, input, work });
    // a call of a function is repeated from here; other work is stored as a run, or as an item of a person
    run.remember(nid, work.kind === 'hosted' ? { isSent: true, input } : { isSent: true });
    if (callbackMs !== null) run.arm(nid, callbackTimer, run.nowMs + callbackMs);
  },
  ticked(_, __, step, { name }) {
    if (name === callbackTimer) throw new StepFailure('timeout', `nobody answered the request of ${step.name} in time`);
  },
  close(run, nid, step, isKill) {
    // a person, or a receiver that has taken a request, does not say that it has stopped
    const isSilent = step.work.kind === 'human' || callbackOf(step) !== null;
    if (!stopWork(run, nid, isKill) || isKill || isSilent) return false;
    run.arm(nid, 'grace', run.nowMs + graceMs);
    return true;
  },
};

/** How long an answer by link may take; null: the answer comes from the run itself. */
function callbackOf({ work }: TaskStep): Compiled | null {
  return work.kind === 'run' ? work.callback : null;
}

/** Whether there was work to stop. */
function stopWork(run: Run, nid: string, isKill: boolean): boolean {
  if (run.memory(nid)['isSent'] !== true) return false;
  run.remember(nid, { isSent: false });
  run.effects.push({ kind: 'stop', nid, attempt: run.draft.node(nid)?.attempt ?? 1, isKill });
  return true;
}

function forgetWork(run: Run, nid: string): false {
  run.remember(nid, { isSent: false });
  return false;
}

export const call: VerbRules<CallStep> = {
  execute(run, nid, step) {
    const flow = run.evaluateText(nid, step.flow, 'the name of a flow');
    const input = run.evaluate(nid, step.input);
    checkSize(input);
    if (run.how.depth >= flowLimits.depth)
      throw new StepFailure('too_deep', `more than ${flowLimits.depth} executions call each other`);
    const isDetached = step.mode === 'detached';
    const attempt = run.draft.node(nid)?.attempt ?? 1;
    const id = run.how.newId(nid, attempt);
    run.effects.push({ kind: 'launch', id, nid, attempt, isDetached, flow, input });
    run.remember(nid, { isSent: true, call: id });
  },
  // a flow ends in its own time: its compensations may be long. A detached one is not stopped
  close: (run, nid, { mode }, isKill) =>
    mode === 'child' ? stopWork(run, nid, isKill) && !isKill : forgetWork(run, nid),
};
