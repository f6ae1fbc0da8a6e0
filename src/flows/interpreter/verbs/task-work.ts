/**
 * What performs a task, with the values of its expressions. Values that no worker and no person could use fail the step here: a worker
 * that cannot read one run of a hand-out would lose all of them.
 */
import { findKind } from '../../../runtimes/kinds.ts';
import { asWritten } from '../../../runtimes/work.ts';
import { brief } from '../../expression/values.ts';
import { isObject, type Json, type JsonObject, memberOf } from '../../json.ts';
import type { TaskStep } from '../../language/step.ts';
import { findFormFaults } from '../../workitems/form.ts';
import type { TaskCall } from '../effects.ts';
import { asObject, checkSize, type Run, StepFailure } from '../run.ts';

type Work = TaskCall['work'];

export function workOf(run: Run, nid: string, step: TaskStep): Work {
  const { work } = step;
  switch (work.kind) {
    case 'hosted':
      return work;
    case 'human': {
      const item = asObject(run.evaluate(nid, work.item), 'human');
      checkSize(item);
      return { kind: 'human', item: itemOf(item) };
    }
    case 'run':
      return runOf(run, nid, step, work);
    default:
      return work satisfies never;
  }
}

function runOf(
  run: Run,
  nid: string,
  { queue, pool, priority }: TaskStep,
  { runtime, block: compiled, callback }: Extract<TaskStep['work'], { kind: 'run' }>,
): Work {
  const attempt = run.draft.node(nid)?.attempt ?? 1;
  const plain = asObject(run.evaluate(nid, compiled), runtime);
  const block = callback === null ? plain : { ...plain, answer_url: run.how.link(nid, attempt) };
  checkSize(block);
  checkBlock(runtime, block);
  return { kind: 'run', runtime, block, queue, pool, priority };
}

function checkBlock(runtime: string, block: JsonObject): void {
  const { env = {} } = block;
  const fault = findEnvFault(env);
  if (fault !== undefined) throw unusable(fault);
  try {
    findKind(runtime)?.expand({ ...block, kind: runtime, env: {} }, asWritten);
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error));
  }
}

function findEnvFault(env: Json): string | undefined {
  if (!isObject(env)) return 'the variables must be a mapping';
  for (const [name, value] of Object.entries(env)) {
    if (typeof value === 'string' || (isObject(value) && typeof value['stash'] === 'string')) continue;
    return `${name} must be text or {stash: name}, not ${brief(value)}; convert it with string()`;
  }
  return undefined;
}

/** The texts of the item are stored as texts, which have no NUL. */
function itemOf(item: JsonObject): JsonObject {
  const texts = ['title', 'assignee', 'team'].map((key): [string, Json] => [key, textOf(key, memberOf(item, key))]);
  const [fault] = findFormFaults(memberOf(item, 'form') ?? {});
  if (fault !== undefined) throw unusable(`form${fault.path === '' ? '' : `.${fault.path}`} ${fault.message}`);
  const present = texts.filter(([, value]) => value !== null);
  const { title: _, assignee: __, team: ___, ...rest } = item;
  return { ...rest, ...Object.fromEntries(present) };
}

function textOf(key: string, value: Json | undefined): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value.replaceAll('\0', '\uFFFD');
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw unusable(`${key} must be text, not ${brief(value)}`);
}

function unusable(message: string): StepFailure {
  return new StepFailure('expression_error', message);
}
