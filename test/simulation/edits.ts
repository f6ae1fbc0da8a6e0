/** Edits of a job by users. Each adds, drops or changes one thing. */
import { type EdgePlan, type JobPlan, poolName, second, type TaskPlan, type TriggerPlan } from './documents.ts';
import type { Random } from './random.ts';

type Edit = (random: Random, job: JobPlan) => JobPlan;

/** Returns the job with one random change, or occasionally with none. */
export function editRandomly(random: Random, job: JobPlan): JobPlan {
  return random.pick(edits)(random, job);
}

const edits: readonly Edit[] = [
  (_, job) => job,
  (random, job) => ({ ...job, paused: random.pick([true, false, undefined]) }),
  (random, job) => editTask(random, job, (task) => ({ ...task, threshold: random.pick([1, 1, 2, 3, undefined]) })),
  (random, job) => editTask(random, job, (task) => ({ ...task, edges: task.edges.slice(1) })),
  (random, job) =>
    editTask(random, job, (task) => ({ ...task, edges: [...task.edges, ...moreEdges(random, job, task)] })),
  (random, job) =>
    editTask(random, job, (task) => ({
      ...task,
      retry: task.retry && { ...task.retry, maxAttempts: random.int(1, 3) },
    })),
  dropTask,
  addTask,
  (random, job) => editTask(random, job, (task) => ({ ...task, maxRunning: random.pick([1, 2, undefined]) })),
  (random, job) => editTask(random, job, (task) => ({ ...task, pool: random.pick([poolName, undefined]) })),
  (random, job) => ({
    ...job,
    maxActiveInstants: random.pick([1, 2, undefined]),
    overlap: random.pick(['queue', 'skip']),
  }),
  (random, job) =>
    editTrigger(random, job, (trigger) => ({ ...trigger, catchup: random.pick(['earliest', 'latest']) })),
  (random, job) =>
    editTrigger(random, job, (trigger) => ({ ...trigger, offsetMs: random.pick([0, 10, -10, 30]) * second })),
  (random, job) =>
    editTrigger(random, job, (trigger) => ({
      ...trigger,
      endMs: trigger.endMs + random.pick([-1, 1]) * trigger.periodMs,
    })),
  (random, job) =>
    editTrigger(random, job, (trigger) => ({
      ...trigger,
      startMs: trigger.startMs - random.int(1, 3) * trigger.periodMs,
    })),
  dropTrigger,
];

function editTask(random: Random, job: JobPlan, edit: (task: TaskPlan) => TaskPlan): JobPlan {
  const chosen = random.maybe(job.tasks);
  return { ...job, tasks: job.tasks.map((task) => (task === chosen ? edit(task) : task)) };
}

function editTrigger(random: Random, job: JobPlan, edit: (trigger: TriggerPlan) => TriggerPlan): JobPlan {
  const chosen = random.maybe(job.triggers);
  const triggers = job.triggers.map((trigger) => (trigger === chosen ? edit(trigger) : trigger));
  // a trigger whose end would precede its start stays as it is
  return triggers.some((trigger) => trigger.endMs <= trigger.startMs) ? job : { ...job, triggers };
}

/** An edge from an earlier task, so that no cycle without an offset arises. */
function moreEdges(random: Random, job: JobPlan, task: TaskPlan): TaskPlan['edges'] {
  const parent = random.maybe(job.tasks.slice(0, job.tasks.indexOf(task)));
  if (parent === undefined || task.edges.some((edge) => edge.parent === parent.name)) return [];
  return [{ kind: random.pick(['success', 'done']), job: job.name, parent: parent.name, offsetMs: 0 }];
}

function dropTask(random: Random, job: JobPlan): JobPlan {
  const gone = random.maybe(job.tasks);
  if (gone === undefined || job.tasks.length === 1) return job;
  return withoutEdges({ ...job, tasks: job.tasks.filter((task) => task !== gone) }, 'task', gone.name);
}

function dropTrigger(random: Random, job: JobPlan): JobPlan {
  const gone = random.maybe(job.triggers);
  if (gone === undefined) return job;
  const triggers = job.triggers.filter((trigger) => trigger !== gone);
  return withoutEdges({ ...job, triggers }, 'trigger', gone.name);
}

/** Removes the edges that lead from a dropped task or trigger, since the document may no longer name it. */
function withoutEdges(job: JobPlan, from: 'task' | 'trigger', name: string): JobPlan {
  const leadsFrom = (edge: EdgePlan): boolean =>
    (edge.kind === 'trigger') === (from === 'trigger') && edge.job === job.name && edge.parent === name;
  const tasks = job.tasks.map((task) => ({ ...task, edges: task.edges.filter((edge) => !leadsFrom(edge)) }));
  return { ...job, tasks };
}

/** Adds a task under the first free name, so that a dropped task comes back under its old name. */
function addTask(_: Random, job: JobPlan): JobPlan {
  const name = ['a', 'b', 'c', 'd', 'e', 'f'].find((letter) => job.tasks.every((task) => task.name !== letter));
  if (name === undefined) return job;
  const edges = job.triggers
    .slice(0, 1)
    .map(({ name: parent }) => ({ kind: 'trigger' as const, job: job.name, parent, offsetMs: 0 }));
  const plain = { threshold: undefined, retry: undefined, maxRunning: undefined, pool: undefined };
  return { ...job, tasks: [...job.tasks, { name, edges, ...plain }] };
}
