/**
 * Random jobs: a few triggers and tasks, joined by edges of all kinds. The oracle reads a `JobPlan`; `documentOf` writes
 * it as the document that the product receives.
 */
import type { Random } from './random.ts';

type Kind = 'trigger' | 'success' | 'failure' | 'done';
type Catchup = 'none' | 'earliest' | 'latest' | 'random' | 'last';

export interface TriggerPlan {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly periodMs: number;
  readonly offsetMs: number;
  readonly catchup: Catchup;
  readonly windowMs: number | undefined;
}

export interface EdgePlan {
  readonly kind: Kind;
  readonly job: string;
  /** Name of a trigger or of a task, depending on `kind`. */
  readonly parent: string;
  readonly offsetMs: number;
}

export interface RetryPlan {
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly factor: number;
  readonly capMs: number | undefined;
  readonly jitter: number;
  readonly on: readonly string[];
}

export interface TaskPlan {
  readonly name: string;
  readonly edges: readonly EdgePlan[];
  /** Undefined: the default, the number of edges that are not of kind `failure`, at least 1. */
  readonly threshold: number | undefined;
  readonly retry: RetryPlan | undefined;
  readonly maxRunning: number | undefined;
  readonly pool: string | undefined;
}

export interface JobPlan {
  readonly name: string;
  readonly maxActiveInstants: number | undefined;
  readonly overlap: 'queue' | 'skip' | 'cancel_older' | undefined;
  /** Undefined: the document does not set it. */
  readonly paused: boolean | undefined;
  readonly triggers: readonly TriggerPlan[];
  readonly tasks: readonly TaskPlan[];
}

export const project = 'simulation';
/** The one pool, shared by all tasks that use a pool. */
export const poolName = 'P';
export const second = 1_000;
/** Start of a world's time, duration of the chaos, and the latest possible instant. */
export const beginMs = Date.parse('2026-06-01T00:00:00Z');
export const chaosMs = 90 * second;
const lastInstantMs = beginMs + chaosMs + 30 * second;

export const thresholdOf = (task: TaskPlan): number =>
  task.threshold ?? Math.max(1, task.edges.filter((edge) => edge.kind !== 'failure').length);

export function documentOf(job: JobPlan): object {
  return {
    uuid: `00000000-0000-7000-a000-0000000000${job.name.charCodeAt(0)}`,
    project,
    name: job.name,
    ...(job.paused === undefined ? {} : { paused: job.paused }),
    ...(job.maxActiveInstants === undefined
      ? {}
      : { max_active_instants: job.maxActiveInstants, overlap: job.overlap }),
    triggers: job.triggers.map((trigger) => ({
      name: trigger.name,
      start: new Date(trigger.startMs).toISOString(),
      end: new Date(trigger.endMs).toISOString(),
      period: `${trigger.periodMs / second}s`,
      offset: `${trigger.offsetMs / second}s`,
      catchup: trigger.catchup,
      ...(trigger.windowMs === undefined ? {} : { catchup_window: `${trigger.windowMs / second}s` }),
    })),
    tasks: job.tasks.map((task) => ({
      name: task.name,
      depends: referencesOf(task, ['trigger', 'success']),
      depends_failure: referencesOf(task, ['failure']),
      depends_done: referencesOf(task, ['done']),
      ...(task.threshold === undefined ? {} : { threshold: task.threshold }),
      ...(task.retry === undefined ? {} : { retry: retryOf(task.retry) }),
      ...(task.maxRunning === undefined ? {} : { max_running: task.maxRunning }),
      ...(task.pool === undefined ? {} : { pool: task.pool }),
    })),
  };
}

function referencesOf(task: TaskPlan, kinds: readonly Kind[]): string[] {
  return task.edges
    .filter((edge) => kinds.includes(edge.kind))
    .map(({ kind, job, parent, offsetMs }) => {
      const offset = offsetMs === 0 ? '' : `@${offsetMs / second}s`;
      return `${job}/${kind === 'trigger' ? 'trigger' : 'task'}/${parent}${offset}`;
    });
}

function retryOf(retry: RetryPlan): object {
  return {
    max_attempts: retry.maxAttempts,
    delay: `${retry.delayMs / second}s`,
    factor: retry.factor,
    ...(retry.capMs === undefined ? {} : { cap: `${retry.capMs / second}s` }),
    jitter: retry.jitter,
    on: retry.on,
  };
}

/** One or two jobs; the second may depend on the first. */
export function someJobs(random: Random): JobPlan[] {
  const first = someJob(random, 'J', []);
  return random.chance(0.5) ? [first] : [first, someJob(random, 'K', [first])];
}

/** A random job. Its triggers and the offsets of its edges share a rhythm; otherwise tokens would hardly ever meet. */
function someJob(random: Random, name: string, others: readonly JobPlan[]): JobPlan {
  const beatMs = random.pick([5, 10, 10, 20]) * second;
  const triggers = Array.from({ length: random.int(1, 2) }, (_, i) => someTrigger(random, `t${i + 1}`, beatMs));
  const tasks: TaskPlan[] = [];
  const count = random.int(2, 5);
  for (let i = 0; i < count; i++) {
    const job = { name, triggers, tasks };
    tasks.push(someTask(random, String.fromCharCode(97 + i), { job, others, beatMs }));
  }
  if (random.chance(0.3)) closeCycle(random, name, tasks, beatMs);
  return {
    name,
    paused: random.chance(0.1) ? true : undefined,
    ...(random.chance(0.25) ? someInstantLimit(random) : { maxActiveInstants: undefined, overlap: undefined }),
    triggers,
    tasks,
  };
}

function someTrigger(random: Random, name: string, beatMs: number): TriggerPlan {
  const periodMs = beatMs * random.pick([1, 1, 2]);
  const instants = random.int(4, 10);
  const endMs = lastInstantMs - random.int(0, 10) * periodMs;
  const catchup = random.weighted<Catchup>({ earliest: 4, latest: 2, random: 2, none: 1, last: 1 });
  return {
    name,
    startMs: endMs - instants * periodMs + (random.chance(0.2) ? beatMs / 2 : 0),
    endMs,
    periodMs,
    offsetMs: random.pick([0, 0, 0, 5, -5, 20, -30, 45]) * second,
    catchup,
    windowMs: random.chance(0.15) ? random.pick([20, 60, 120]) * second : undefined,
  };
}

function someInstantLimit(random: Random): Pick<JobPlan, 'maxActiveInstants' | 'overlap'> {
  const overlap = random.weighted({ queue: 3, skip: 1, cancel_older: 1 });
  return { maxActiveInstants: random.int(1, 2), overlap };
}

interface Surroundings {
  readonly job: Pick<JobPlan, 'name' | 'triggers' | 'tasks'>;
  readonly others: readonly JobPlan[];
  readonly beatMs: number;
}

function someTask(random: Random, name: string, around: Surroundings): TaskPlan {
  const edges: EdgePlan[] = [];
  const count = random.weighted({ '0': 1, '1': 9, '2': 8, '3': 4 });
  for (let i = 0; i < Number(count); i++) addEdge(edges, someEdge(random, around));
  const most = edges.length + (random.chance(0.2) ? 1 : 0);
  return {
    name,
    edges,
    threshold: random.chance(0.4) ? random.int(Math.min(2, Math.max(1, most)), Math.max(1, most)) : undefined,
    retry: random.chance(0.4) ? someRetry(random) : undefined,
    maxRunning: random.chance(0.15) ? random.int(1, 2) : undefined,
    pool: random.chance(0.15) ? poolName : undefined,
  };
}

/** Adds an edge unless the task has it already: a document may name an edge only once. */
function addEdge(edges: EdgePlan[], edge: EdgePlan | undefined): void {
  if (edge === undefined) return;
  const key = JSON.stringify(edge);
  if (!edges.some((known) => JSON.stringify(known) === key)) edges.push(edge);
}

function someEdge(random: Random, { job, others, beatMs }: Surroundings): EdgePlan | undefined {
  const from = random.chance(0.2) ? (random.maybe(others) ?? job) : job;
  const offsetMs = random.pick([0, 0, 0, 0, 1, 2]) * beatMs;
  const task = random.chance(0.55) ? random.maybe(from.tasks) : undefined;
  if (task !== undefined) {
    const kind = random.weighted<Kind>({ success: 6, failure: 2, done: 3, trigger: 0 });
    return { kind, job: from.name, parent: task.name, offsetMs };
  }
  const trigger = random.maybe(from.triggers);
  return trigger && { kind: 'trigger', job: from.name, parent: trigger.name, offsetMs };
}

function someRetry(random: Random): RetryPlan {
  const delayMs = random.pick([1, 5, 20]) * second;
  return {
    maxAttempts: random.int(2, 3),
    delayMs,
    factor: random.pick([1, 2, 3]),
    capMs: random.chance(0.3) ? delayMs * 2 : undefined,
    jitter: random.pick([0, 0, 0.5]),
    on: random.pick([['failure'], ['failure', 'timeout'], ['failure', 'timeout', 'error'], ['error']]),
  };
}

/** Makes a task depend on its own past, or on that of the last task. Only by success, so that a failure ends the cycle. */
function closeCycle(random: Random, job: string, tasks: TaskPlan[], beatMs: number): void {
  const child = random.int(0, tasks.length - 1);
  const parent = random.chance(0.5) ? child : tasks.length - 1;
  const [task, from] = [tasks[child], tasks[parent]];
  if (task === undefined || from === undefined) return;
  const edges = [...task.edges];
  addEdge(edges, { kind: 'success', job, parent: from.name, offsetMs: random.pick([1, 2]) * beatMs });
  tasks[child] = { ...task, edges };
}
