/** Verbs about time and events: `wait`, `on`, `signal`. */
import { isId } from '../../../kernel/id.ts';
import { type Json, isList, type JsonObject } from '../../json.ts';
import { durationMs, momentMs } from '../../language/read-duration.ts';
import type { EventSpec, OnStep, SignalStep, WaitStep } from '../../language/step.ts';
import { canKeep, factsOf, fits, payloadOf, takeEarly } from '../hearing.ts';
import { firstPlanned, passedTimes } from '../recurring.ts';
import { checkSize, flowLimits, type Run, StepFailure, type VerbRules } from '../run.ts';

export const wait: VerbRules<WaitStep> = {
  execute(run, nid, step) {
    const dues: number[] = [];
    if (step.for !== null) dues.push(run.nowMs + durationMs(run.evaluate(nid, step.for)));
    if (step.until !== null) dues.push(momentMs(run.evaluate(nid, step.until)));
    if (dues.length > 0) run.arm(nid, 'wait', Math.min(...dues));
    for (const [i, spec] of step.on.entries()) armRecurring(run, nid, spec, `tick${i}`);
    takeEarly(run, nid, step);
  },
  ticked(run, nid, _, { name, plannedMs }) {
    run.complete(nid, name === 'wait' ? null : { planned_at: new Date(plannedMs).toISOString() });
  },
  heard(run, nid, step, event) {
    if (run.memory(nid)['isDeaf'] === true || !step.on.some((spec) => fits(run, nid, spec, event))) return false;
    // the next signal is for others, even before this step has been closed
    run.remember(nid, { isDeaf: true });
    run.complete(nid, payloadOf(event));
    return true;
  },
};

function armRecurring(run: Run, nid: string, spec: EventSpec, name: string): void {
  if (spec.kind !== 'every' && spec.kind !== 'cron') return;
  const plannedMs = firstPlanned(spec, run.nowMs, (compiled) => run.evaluateDuration(nid, compiled));
  if (plannedMs !== undefined) run.arm(nid, name, plannedMs, plannedMs);
}

export const on: VerbRules<OnStep> = {
  execute(run, nid, step) {
    run.remember(nid, { taken: 0, running: 0, queue: [] });
    armRecurring(run, nid, step.event, 'tick');
    takeEarly(run, nid, step);
  },
  heard(run, nid, step, event) {
    if (run.memory(nid)['isDeaf'] === true || !fits(run, nid, step.event, event)) return false;
    return accept(run, nid, step, factsOf(event));
  },
  ticked(run, nid, step, { plannedMs }) {
    const { event } = step;
    if (event.kind !== 'every' && event.kind !== 'cron') return;
    const period = (compiled: Parameters<Run['evaluateDuration']>[1]) => run.evaluateDuration(nid, compiled);
    const { handled, nextMs } = passedTimes(event, plannedMs, run.nowMs, period);
    for (const atMs of handled) {
      if (run.memory(nid)['isDeaf'] === true) return;
      const facts = { name: event.kind, planned_at: new Date(atMs).toISOString() };
      if (!accept(run, nid, step, facts))
        throw new StepFailure('too_many_events', `more than ${flowLimits.queuedEvents} events wait to be handled`);
    }
    if (nextMs !== undefined && run.memory(nid)['isDeaf'] !== true) run.arm(nid, 'tick', nextMs, nextMs);
  },
  ended(run, nid, step) {
    const { running, queue = [] } = run.memory(nid);
    run.remember(nid, { running: Number(running) - 1 });
    const [next, ...rest] = isList(queue) ? queue : [];
    if (next !== undefined) {
      run.remember(nid, { queue: rest });
      begin(run, nid, step, next);
      if (rest.length < flowLimits.queuedEvents / 2) takeEarly(run, nid, step);
    } else if (run.memory(nid)['isDeaf'] === true && run.memory(nid)['running'] === 0) run.complete(nid);
  },
};

/** Returns false if too many events wait to be handled: a signal is then kept for later. */
function accept(run: Run, nid: string, step: OnStep, event: JsonObject): boolean {
  const { taken, running, queue = [] } = run.memory(nid);
  const waiting = isList(queue) ? queue : [];
  if (waiting.length >= flowLimits.queuedEvents) return false;
  const count = Number(taken) + 1;
  if (!step.inOrder || running === 0) begin(run, nid, step, event);
  else run.remember(nid, { queue: [...waiting, event] });
  run.remember(nid, { taken: count, isDeaf: step.count !== null && count >= step.count });
  return true;
}

function begin(run: Run, nid: string, { body }: OnStep, event: Json): void {
  run.start(nid, body.at, { locals: { event }, vars: {} });
  run.remember(nid, { running: Number(run.memory(nid)['running']) + 1 });
}

export const signal: VerbRules<SignalStep> = {
  execute(run, nid, step) {
    const name = run.evaluateText(nid, step.name, 'the name of a signal');
    const payload = run.evaluate(nid, step.payload);
    checkSize(payload);
    const to = step.to === null ? null : run.evaluateText(nid, step.to, 'the receiver of a signal');
    if (to !== null && !isId(to))
      throw new StepFailure('expression_error', `the receiver of a signal must be the id of an execution, not ${to}`);
    if (to === null || to === run.how.execution.id) {
      if (!canKeep(run, payload)) throw new StepFailure('too_many_signals', 'too many signals wait to be heard');
      run.todo.add({ do: 'hear', name, payload });
    } else run.effects.push({ kind: 'signal', to, name, payload });
    run.complete(nid);
  },
};
