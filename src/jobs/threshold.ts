/**
 * Warns of thresholds that a task's edges can never reach within one instant, so that it would only run by activation.
 *
 * Counts an upper bound: a trigger fires once an instant, a task without edges is activated once, and any other runs at
 * most as often as its tokens suffice. One run of a parent ends in one way, so of its success and its failure only one
 * counts. What lies on or behind a cycle, or behind another job, may run any number of times: no warning.
 */
import type { Fault } from '../errors.ts';
import type { EdgeDefinition, TaskDefinition } from './definition.ts';

export function thresholdWarnings(tasks: readonly TaskDefinition[]): Fault[] {
  const most = mostRuns(tasks);
  return tasks.flatMap(({ edges, threshold }, i) => {
    const tokens = mostTokens(edges, most);
    if (edges.length === 0 || tokens >= threshold) return [];
    const message = `is ${threshold}, but its edges give at most ${tokens} per instant: it will only run when activated`;
    return [{ path: `tasks[${i}].threshold`, message }];
  });
}

/** Task name → the most runs in one instant, in the order of dependence; tasks on or behind a cycle are left out. */
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

function localParents(task: TaskDefinition): Set<string> {
  return new Set(task.edges.flatMap(({ parent }) => (parent.local && parent.kind === 'task' ? [parent.name] : [])));
}

/** At least once, so that a warning about a task is not repeated for all that depend on it. */
function runsOf(task: TaskDefinition, most: ReadonlyMap<string, number>): number {
  if (task.edges.length === 0) return 1;
  return Math.max(1, Math.floor(mostTokens(task.edges, most) / task.threshold));
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

/** Of edges from one parent at one offset. */
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
