/**
 * What `millrace flow test` does to the simulated execution, in the order of the command line.
 *
 * 1. `--skip`, `--signal` and the answers of people happen one after the other.
 * 2. Tasks of machines are answered at once, each time they are called: with the results that are given for them, the last of them
 *    for ever, or with null.
 */
import type { Flow, TaskStep } from '../../../flows/language/step.ts';
import type { Json } from '../../../flows/json.ts';
import type { FlowTest, TestFlowOptions, TestTask } from '../../../flows/testing/test-flow.ts';
import { groupBy } from '../../../kernel/group-by.ts';
import { parseDuration } from '../../../kernel/text/duration.ts';
import { UsageError } from '../../session/exit.ts';
import { parseJsonText, readAssignment } from '../../session/json-value.ts';

export type TestAction =
  | { readonly kind: 'skip'; readonly duration: string }
  | { readonly kind: 'signal'; readonly name: string; readonly payload: Json }
  | { readonly kind: 'answer'; readonly task: string; readonly result: Json }
  | { readonly kind: 'fail'; readonly task: string; readonly code: string };

type AnswerAction = Extract<TestAction, { task: string }>;

export function readAction(flag: 'skip' | 'signal' | 'answer' | 'fail', value: string): TestAction {
  const at = value.indexOf('=');
  const [name, rest] = at < 0 ? [value, undefined] : [value.slice(0, at), value.slice(at + 1)];
  switch (flag) {
    case 'skip': {
      const parsed = parseDuration(value);
      if (parsed.ok) return { kind: 'skip', duration: value };
      throw new UsageError(`--skip: ${JSON.stringify(value)} ${parsed.message}`);
    }
    case 'signal':
      return { kind: 'signal', name, payload: rest === undefined ? null : parseJsonText(`--signal ${name}`, rest) };
    case 'answer': {
      const [task, result] = readAssignment('--answer', value);
      return { kind: 'answer', task, result };
    }
    case 'fail':
      return { kind: 'fail', task: name, code: rest ?? 'error' };
    default:
      return flag satisfies never;
  }
}

function isTask(step: { readonly verb: string }): step is TaskStep {
  return step.verb === 'task';
}

interface Tasks {
  readonly people: ReadonlySet<string>;
  readonly machines: ReadonlySet<string>;
  readonly hasCalls: boolean;
}

function tasksOf({ byPosition }: Flow): Tasks {
  const steps = [...byPosition.values()];
  const tasks = steps.filter(isTask);
  const people = new Set(tasks.filter(({ work }) => work.kind === 'human').map(({ name }) => name));
  const machines = new Set(tasks.map(({ name }) => name).filter((name) => !people.has(name)));
  return { people, machines, hasCalls: steps.some(({ verb }) => verb === 'call') };
}

/** The functions that stand for tasks, and for other flows that the flow calls. */
export function standIns(flow: Flow, actions: readonly TestAction[]): Pick<TestFlowOptions, 'tasks' | 'flows'> {
  const { people, machines, hasCalls } = tasksOf(flow);
  const given = groupBy(actions.filter(isAnswer), ({ task }) => task);
  const unknown = [...given.keys()].find((name) => !people.has(name) && !machines.has(name) && !hasCalls);
  if (unknown !== undefined) {
    const known = [...people, ...machines].join(', ') || 'none';
    throw new UsageError(`the flow has no task ${unknown}; its tasks: ${known}`);
  }
  const flows = [...given].filter(([name]) => !people.has(name) && !machines.has(name));
  return {
    tasks: Object.fromEntries([...machines].map((name) => [name, makeStandIn(given.get(name) ?? [])])),
    flows: Object.fromEntries(flows.map(([name, answers]) => [name, makeStandIn(answers)])),
  };
}

function isAnswer(action: TestAction): action is AnswerAction {
  return action.kind === 'answer' || action.kind === 'fail';
}

function makeStandIn(answers: readonly AnswerAction[]): TestTask {
  let calls = 0;
  return () => {
    const answer = answers[Math.min(calls++, answers.length - 1)];
    if (answer?.kind === 'fail') throw Object.assign(new Error('as the test wants it'), { code: answer.code });
    return answer?.result ?? null;
  };
}

/** Does what the command line says, in its order. Answers of machines have been given already. */
export async function perform(test: FlowTest, flow: Flow, actions: readonly TestAction[]): Promise<void> {
  const { people } = tasksOf(flow);
  for (const action of actions) {
    if (action.kind === 'skip') await test.skip(action.duration);
    else if (action.kind === 'signal') await test.signal(action.name, action.payload);
    else if (people.has(action.task)) await answer(test, action);
  }
}

async function answer(test: FlowTest, action: AnswerAction): Promise<void> {
  if (!test.open.some(({ task }) => task === action.task)) {
    const open = test.open.flatMap(({ task }) => (task === null ? [] : [task])).join(', ') || 'none';
    throw new UsageError(`--${action.kind}: the task ${action.task} is not open at that time; open tasks: ${open}`);
  }
  if (action.kind === 'answer') await test.answer(action.task, action.result);
  else await test.fail(action.task, action.code, 'as the test wants it');
}
