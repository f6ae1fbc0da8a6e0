/**
 * The environment of every task, for all runtimes: facts about its run under our names and under Waterwheel's, which override
 * the declared variables. A declared value may be a template, or an entry of the stash.
 */
import type { Environment, RuntimeBlock } from '../../contract/wire.ts';
import type { NodeFacts, RunFacts, TaskFacts } from './facts.ts';
import type { Expansion } from './templates.ts';

/** A declared value is not available; the message is the run's reason. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

export function declaredIn(block: RuntimeBlock): Environment {
  return block.env ?? {};
}

/** The stash entries that an environment names, each once. */
export function stashNames(declared: Environment): string[] {
  const names = Object.values(declared).flatMap((value) => (typeof value === 'string' ? [] : [value.stash]));
  return [...new Set(names)];
}

/** The maximum size of all stash values in the variables of one run. Its output is searched for each of their lines. */
export const maxStashBytes = 512 * 1024;

export function explainStashExcess(bytes: number): string {
  return `its variables take ${bytes} bytes from the stash; at most ${maxStashBytes} are allowed. Let the task read large values from the API`;
}

export function environmentOf(
  declared: Environment,
  expansion: Expansion,
  stash: ReadonlyMap<string, Buffer>,
): Record<string, string> {
  const stashBytes = [...stash.values()].reduce((sum, value) => sum + value.length, 0);
  if (stashBytes > maxStashBytes) throw new EnvironmentError(explainStashExcess(stashBytes));
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(declared)) {
    env[name] = typeof value === 'string' ? expansion.text(value) : fromStash(name, value.stash, stash);
  }
  return Object.assign(env, addedVariables(expansion.facts));
}

/** The variables that every task gets besides the declared ones. */
export function addedVariables(facts: RunFacts): Record<string, string> {
  const own = facts.node === null ? { ...taskVariables(facts), ...waterwheels(facts) } : nodeVariables(facts);
  return { ...ours(facts), ...own };
}

/** The variables of a task with secrets: its credential, and all from the stash. */
export function secretsIn(declared: Environment): ReadonlySet<string> {
  const fromStash = Object.entries(declared).flatMap(([name, value]) => (typeof value === 'string' ? [] : [name]));
  return new Set([...secretNames, ...fromStash]);
}

/** The variables with the task's credential. Only the task may read them. */
export const secretNames: ReadonlySet<string> = new Set(['MILLRACE_CREDENTIAL', 'WATERWHEEL_JWT']);

function fromStash(variable: string, name: string, stash: ReadonlyMap<string, Buffer>): string {
  const value = stash.get(name);
  if (!value)
    throw new EnvironmentError(`the variable ${variable} names the stash entry "${name}", which does not exist`);
  if (value.includes(0)) {
    throw new EnvironmentError(`the stash entry "${name}" holds a NUL byte and cannot be the variable ${variable}`);
  }
  return value.toString('utf8');
}

function ours(facts: RunFacts): Record<string, string> {
  return {
    MILLRACE_TENANT: facts.tenant,
    MILLRACE_RUN_ID: facts.run,
    MILLRACE_ATTEMPT: String(facts.attempt),
    MILLRACE_IDEMPOTENCY_KEY: facts.idempotencyKey,
    ...paramsIn(facts),
    ...(facts.project === null
      ? {}
      : { MILLRACE_PROJECT_NAME: facts.project.name, MILLRACE_PROJECT_ID: facts.project.id }),
    MILLRACE_URL: facts.url,
    MILLRACE_CREDENTIAL: facts.credential,
  };
}

function taskVariables(facts: TaskFacts): Record<string, string> {
  return {
    MILLRACE_INSTANT: facts.instant,
    MILLRACE_TASK_NAME: facts.task.name,
    MILLRACE_TASK_ID: facts.task.id,
    MILLRACE_JOB_NAME: facts.job.name,
    MILLRACE_JOB_ID: facts.job.id,
  };
}

function nodeVariables({ node }: NodeFacts): Record<string, string> {
  return { MILLRACE_EXECUTION_ID: node.execution, MILLRACE_NODE_ID: node.id, MILLRACE_NODE_NAME: node.name };
}

/** The maximum size of params in a variable. Linux allows at most 128 KiB in one variable. */
const maxParamBytes = 100 * 1024;

function paramsIn(facts: RunFacts): Record<string, string> {
  const text = JSON.stringify(facts.params);
  if (Buffer.byteLength(text) <= maxParamBytes) return { MILLRACE_PARAMS: text };
  return { MILLRACE_PARAMS_URL: `${facts.url}/api/runs/${facts.run}/environment` };
}

function waterwheels(facts: TaskFacts): Record<string, string> {
  return {
    // whole seconds as in Waterwheel, unless the instant has milliseconds: it must identify the same instant when it is sent back
    WATERWHEEL_TRIGGER_DATETIME: new Date(facts.instant).toISOString().replace('.000Z', 'Z'),
    WATERWHEEL_TASK_NAME: facts.task.name,
    WATERWHEEL_TASK_ID: facts.task.id,
    WATERWHEEL_JOB_NAME: facts.job.name,
    WATERWHEEL_JOB_ID: facts.job.id,
    WATERWHEEL_PROJECT_NAME: facts.project.name,
    WATERWHEEL_PROJECT_ID: facts.project.id,
    // tasks of Waterwheel append paths to it
    WATERWHEEL_SERVER_ADDR: `${facts.url}/`,
    WATERWHEEL_JWT: facts.credential,
  };
}
