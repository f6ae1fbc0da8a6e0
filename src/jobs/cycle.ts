/**
 * Warns of tasks that wait for each other, or for themselves, at the same instant. A cycle is how a task depends on its
 * past, if one of its edges leads to a later instant; without one it never starts by itself, and once started it never
 * ends.
 */
import type { Fault } from '../errors.ts';
import type { TaskDefinition } from './definition.ts';

/** One warning a cycle, at the first task of the document that is on it. */
export function cycleWarnings(tasks: readonly TaskDefinition[]): Fault[] {
  const parents = suspects(tasks);
  const told = new Set<string>();
  return tasks.flatMap((task, i) => {
    const cycle = told.has(task.name) || !parents.has(task.name) ? undefined : cycleFrom(task.name, parents);
    if (cycle === undefined) return [];
    for (const name of cycle) told.add(name);
    const way = [...cycle, task.name].map((name) => `task/${name}`).join(' ← ');
    return [
      {
        path: `tasks[${i}]`,
        message: `waits for itself at the same instant: ${way}; an offset such as @1d on one of these edges would lead to a later instant`,
      },
    ];
  });
}

/** Tasks on or behind a cycle with their parents: what is left when all that can start is taken away. Linear. */
function suspects(tasks: readonly TaskDefinition[]): Map<string, readonly string[]> {
  const parents = new Map(tasks.map((task) => [task.name, parentsNow(task)]));
  const waits = new Map([...parents].map(([name, list]) => [name, list.length]));
  const children = new Map<string, string[]>(tasks.map(({ name }) => [name, []]));
  for (const [name, list] of parents) for (const parent of list) children.get(parent)?.push(name);
  const free = [...waits].flatMap(([name, n]) => (n === 0 ? [name] : []));
  for (let name = free.pop(); name !== undefined; name = free.pop()) {
    parents.delete(name);
    for (const child of children.get(name) ?? []) {
      const left = (waits.get(child) ?? 0) - 1;
      waits.set(child, left);
      if (left === 0) free.push(child);
    }
  }
  return parents;
}

/** Parents in this job whose end counts at the very same instant. */
function parentsNow(task: TaskDefinition): string[] {
  const here = task.edges.filter(({ parent, offsetMs }) => parent.local && parent.kind === 'task' && offsetMs === 0);
  return here.map(({ parent }) => parent.name);
}

/** The tasks on a way from this one back to itself, if there is one. */
function cycleFrom(start: string, parents: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const cameBy = new Map<string, string>();
  const open = [start];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const parent of parents.get(at) ?? []) {
      if (parent === start) return wayBack(at, start, cameBy);
      if (cameBy.has(parent)) continue;
      cameBy.set(parent, at);
      open.push(parent);
    }
  }
  return undefined;
}

function wayBack(last: string, start: string, cameBy: ReadonlyMap<string, string>): string[] {
  const way = [last];
  for (let at = last; at !== start; ) {
    at = cameBy.get(at) ?? start;
    way.push(at);
  }
  return way.toReversed();
}
