/**
 * Warns of a threshold that the task's edges can never reach within one instant: the task would run only by activation. Also
 * warns of a task that depends on its own earlier runs, and therefore never starts or never stops.
 *
 * It computes an upper bound of the tokens. A trigger fires once per instant, a task without edges is activated once, and any
 * other task runs as often as its tokens allow. A run of a parent ends either in success or in failure, so only one of these
 * edges counts. Tasks on or behind a cycle of several tasks, or behind another job, may run any number of times: no warning.
 */
import type { Fault } from '../../errors.ts';
import { formatDuration } from '../../kernel/text/duration.ts';
import type { EdgeDefinition, TaskDefinition } from '../definition.ts';

export function thresholdWarnings(tasks: readonly TaskDefinition[]): Fault[] {
  const most = mostRuns(tasks);
  return tasks.flatMap((task, i) => {
    const { edges, threshold } = task;
    if (edges.length === 0) return [];
    const tokens = mostTokens(edges, most);
    if (tokens >= threshold) return ownPastWarnings(task, `tasks[${i}]`, most);
    const message = `is ${threshold}, but its edges give at most ${tokens} per instant: it will only run when activated`;
    return [{ path: `tasks[${i}].threshold`, message }];
  });
}

/** Warnings for a reachable threshold that the task's own earlier runs reach alone, or that is not reachable without them. */
function ownPastWarnings(task: TaskDefinition, path: string, most: ReadonlyMap<string, number>): Fault[] {
  const { own, others } = splitEdges(task);
  // a task that repeats only after a failure stops when it succeeds
  const going = own.filter(({ kind }) => kind !== 'failure');
  if (task.threshold <= going.length) return [{ path, message: endlessMessage(going, others) }];
  if (own.length === 0 || mostTokens(others, most) >= task.threshold) return [];
  const message =
    `its first instant waits for its own run ${formatSpans(own)} before, but there is no such run: start it once by hand, ` +
    '`millrace activate PROJECT/JOB TASK INSTANT`';
  return [{ path, message }];
}

function endlessMessage(own: readonly EdgeDefinition[], others: readonly EdgeDefinition[]): string {
  const way =
    others.length === 0
      ? 'give it a trigger or another parent as well'
      : `with a threshold of more than ${own.length} it would wait for its other parents as well`;
  return `once started it starts itself again ${formatSpans(own)} later, without end: ${way}`;
}

function formatSpans(edges: readonly EdgeDefinition[]): string {
  return [...new Set(edges.map(({ offsetMs }) => formatDuration(offsetMs)))].join(' and ');
}

/** `own`: edges from the task's own runs of earlier instants. */
function splitEdges(task: TaskDefinition): { own: EdgeDefinition[]; others: EdgeDefinition[] } {
  const isOwn = ({ parent, offsetMs }: EdgeDefinition): boolean =>
    parent.local && parent.kind === 'task' && parent.name === task.name && offsetMs !== 0;
  return { own: task.edges.filter(isOwn), others: task.edges.filter((edge) => !isOwn(edge)) };
}

/** Task name → maximum runs in one instant. Parents come before children. Tasks on or behind a cycle are left out. */
function mostRuns(tasks: readonly TaskDefinition[]): ReadonlyMap<string, number> {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const waitsFor = new Map(tasks.map((task) => [task.name, localParents(task)]));
  const children = new Map<string, string[]>(tasks.map(({ name }) => [name, []]));
  for (const [name, parents] of waitsFor) for (const parent of parents) children.get(parent)?.push(name);
  const most = new Map<string, number>();
  const free = tasks.filter((task) => localParents(task).size === 0);
  for (let task = free.pop(); task !== undefined; task = free.pop()) {
    most.set(task.name, runsOf(task, most));
    for (const child of children.get(task.name) ?? []) {
      const parents = waitsFor.get(child);
      parents?.delete(task.name);
      const next = byName.get(child);
      if (parents?.size === 0 && next !== undefined) free.push(next);
    }
  }
  return most;
}

/** Leaves out the task's own earlier runs, which `runsOf` accounts for. */
function localParents(task: TaskDefinition): Set<string> {
  const { others } = splitEdges(task);
  return new Set(others.flatMap(({ parent }) => (parent.local && parent.kind === 'task' ? [parent.name] : [])));
}

/**
 * Returns at least 1, so that a warning about a task is not repeated for all tasks that depend on it. Each earlier run of the
 * task itself gives `again` tokens, so in the long run r runs need r × threshold tokens and get others + r × again.
 */
function runsOf(task: TaskDefinition, most: ReadonlyMap<string, number>): number {
  if (task.edges.length === 0) return 1;
  const { own, others } = splitEdges(task);
  const again = mostTokens(own, new Map([[task.name, 1]]));
  if (again >= task.threshold) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.floor(mostTokens(others, most) / (task.threshold - again)));
}

function mostTokens(edges: readonly EdgeDefinition[], most: ReadonlyMap<string, number>): number {
  const groups = new Map<string, EdgeDefinition[]>();
  for (const edge of edges) {
    const key = JSON.stringify([edge.parent, edge.offsetMs]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [edge]);
    else group.push(edge);
  }
  return [...groups.values()].reduce((sum, group) => sum + tokensOf(group, most), 0);
}

/** Maximum tokens from a group of edges with the same parent and offset. */
function tokensOf(group: readonly EdgeDefinition[], most: ReadonlyMap<string, number>): number {
  const [first] = group;
  if (first === undefined) return 0;
  const { parent } = first;
  if (!parent.local) return Number.POSITIVE_INFINITY;
  if (parent.kind === 'trigger') return 1;
  const count = (kind: string) => group.filter((edge) => edge.kind === kind).length;
  return (
    (most.get(parent.name) ?? Number.POSITIVE_INFINITY) * (count('done') + Math.max(count('success'), count('failure')))
  );
}
