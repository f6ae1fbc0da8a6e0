/**
 * What a live node of an execution waits for, in words and data. Pure: it reads the flow and the state only.
 *
 * Null: it waits for nothing, and goes on with the next message to the execution.
 */
import { Draft } from '../../../flows/interpreter/draft.ts';
import { Run } from '../../../flows/interpreter/run.ts';
import type { FlowNode, FlowState } from '../../../flows/interpreter/state.ts';
import { rulesOf } from '../../../flows/interpreter/verbs/rules.ts';
import { type EventSpec, eventsOf, type Flow, type Step } from '../../../flows/language/step.ts';
import { formatTime } from '../../explain/findings.ts';
import type { waitKinds } from './endpoints.ts';

export interface Waits {
  readonly kind: (typeof waitKinds)[number];
  readonly message: string;
  readonly names: string[];
  readonly untilMs: number | null;
}

export interface WaitReader {
  waitsOf(nid: string): Waits | null;
  /** Whether work of the node is under way elsewhere: a function, a run, a person, or another execution. */
  isAtWork(nid: string): boolean;
}

export function makeWaitReader(
  flow: Flow,
  state: FlowState,
  execution: { id: string; key: string | null },
): WaitReader {
  const how = {
    nowMs: 0,
    seed: '',
    execution,
    depth: 0,
    maxMessages: 0,
    isSpent: () => true,
    link: () => '',
    newId: () => '',
  };
  const run = new Run(flow, new Draft(state), how, rulesOf);
  const waitsOf = (nid: string): Waits | null => {
    const node = run.draft.node(nid);
    const step = node && flow.byPosition.get(node.at);
    return node === undefined || step === undefined ? null : waitsIn(run, nid, node, step);
  };
  const isAtWork = (nid: string): boolean => ['task', 'run', 'child'].includes(waitsOf(nid)?.kind ?? '');
  return { waitsOf, isAtWork };
}

function waits(kind: Waits['kind'], message: string, more: Partial<Waits> = {}): Waits {
  return { kind, message, names: [], untilMs: null, ...more };
}

function waitsIn(run: Run, nid: string, node: FlowNode, step: Step): Waits | null {
  const inside = node.children.length > 0 ? waits('steps', 'the steps inside it') : null;
  switch (node.phase) {
    case 'run':
      return waitsOfVerb(run, nid, node, step) ?? inside;
    case 'backoff':
      return timed('retry', `attempt ${node.attempt + 1}`, dueOf(node, 'retry'));
    case 'incident':
      return waits('incident', `somebody to retry or skip it, after ${node.error?.code ?? 'a failure'}`);
    case 'close':
      return run.memory(nid)['isAwaited'] === true
        ? timed('closing', 'its work to end', dueOf(node, 'grace'), 'at the latest')
        : inside && waits('closing', 'the steps inside it to end');
    case 'undo':
    case 'handle':
      return inside;
    default:
      return node.phase satisfies never;
  }
}

function timed(kind: Waits['kind'], what: string, untilMs: number | null, word = 'at'): Waits {
  const when = untilMs === null ? '' : `, ${word} ${formatTime(new Date(untilMs))}`;
  return waits(kind, `${what}${when}`, { untilMs });
}

function dueOf({ timers = {} }: FlowNode, name: string): number | null {
  return timers[name]?.dueMs ?? null;
}

function waitsOfVerb(run: Run, nid: string, node: FlowNode, step: Step): Waits | null {
  const isSent = run.memory(nid)['isSent'] === true;
  switch (step.verb) {
    case 'task':
      return isSent ? waitsOfTask(node, step) : null;
    case 'call': {
      if (!isSent) return null;
      const name = textOf(() => run.evaluateText(nid, step.flow, 'the name of a flow'));
      return waits('child', `the flow ${name}`, { names: [name] });
    }
    case 'wait':
    case 'on':
      return waitsOfListener(run, nid, node, eventsOf(step));
    case 'loop': {
      const untilMs = dueOf(node, 'pause');
      return untilMs === null ? null : timed('timer', 'its next round', untilMs);
    }
    case 'sequence':
    case 'parallel':
    case 'if':
    case 'switch':
    case 'each':
    case 'signal':
    case 'set':
    case 'fail':
    case 'cancel':
    case 'break':
    case 'continue':
      return null;
    default:
      return step satisfies never;
  }
}

function waitsOfTask({ attempt }: FlowNode, { name, work }: Extract<Step, { verb: 'task' }>): Waits {
  const which = attempt > 1 ? `${name}, attempt ${attempt}` : name;
  switch (work.kind) {
    case 'hosted':
      return waits('task', `the function ${which}`, { names: [name] });
    case 'run':
      return waits('run', `the task ${which} on a worker`, { names: [name] });
    case 'human':
      return waits('human', `somebody to answer ${which}`, { names: [name] });
    default:
      return work satisfies never;
  }
}

/** A `wait` or an `on`. A handler that is at work still listens. */
function waitsOfListener(run: Run, nid: string, node: FlowNode, specs: readonly EventSpec[]): Waits | null {
  if (run.memory(nid)['isDeaf'] === true) return null;
  const dues = Object.entries(node.timers ?? {}).flatMap(([name, { dueMs }]) => (name === 'timeout' ? [] : [dueMs]));
  const untilMs = dues.length === 0 ? null : Math.min(...dues);
  const names = specs.flatMap((spec) =>
    spec.kind === 'signal' ? [textOf(() => run.evaluateText(nid, spec.name, 'the name of a signal'))] : [],
  );
  const steps = specs.flatMap((spec) =>
    spec.kind === 'entered' ? [`the start of ${spec.tag}`] : spec.kind === 'left' ? [`the end of ${spec.tag}`] : [],
  );
  const what = [...(names.length === 0 ? [] : [`the signal ${names.join(' or ')}`]), ...steps].join(', or ');
  if (what !== '') return { ...timed('signal', what, untilMs, 'until'), names };
  return untilMs === null ? null : timed('timer', 'its time', untilMs);
}

/** A name is an expression, which may have no value any more. */
function textOf(evaluate: () => string): string {
  try {
    return evaluate();
  } catch {
    return '?';
  }
}
