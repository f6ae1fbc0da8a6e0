/**
 * Warns of tasks that wait for each other, or for themselves, at the same instant. A cycle with an edge to a later instant is
 * fine: it is how a task depends on its earlier runs. Without such an edge, the cycle never starts by itself, and once started
 * it never ends.
 */
import type { Fault } from '../../errors.ts';
import type { TaskDefinition } from '../definition.ts';

/** One warning per group of tasks that wait for each other, at the first of them in the document, with one path as example. */
export function cycleWarnings(tasks: readonly TaskDefinition[]): Fault[] {
  const parents = new Map(tasks.map((task) => [task.name, parentsNow(task)]));
  const groups = findCycleGroups(parents);
  const warned = new Set<ReadonlySet<string>>();
  return tasks.flatMap((task, i) => {
    const group = groups.get(task.name);
    if (group === undefined || warned.has(group)) return [];
    warned.add(group);
    const way = formatWay([...cycleFrom(task.name, parents, group), task.name]);
    return [
      {
        path: `tasks[${i}]`,
        message: `waits for itself at the same instant: ${way}; an offset such as @1d on one of these edges would lead to a later instant`,
      },
    ];
  });
}

const maxListedTasks = 20;

function formatWay(names: readonly string[]): string {
  const left = names.length - maxListedTasks;
  const shown = names.map((name) => `task/${name}`);
  const short = left > 0 ? [...shown.slice(0, maxListedTasks - 1), `… (${left} more)`, ...shown.slice(-1)] : shown;
  return short.join(' ← ');
}

type Parents = ReadonlyMap<string, readonly string[]>;

interface Visit {
  readonly name: string;
  readonly parents: readonly string[];
  next: number;
}

/**
 * Maps each task that is on a cycle to its group (Tarjan's strongly connected components, without recursion). Takes linear
 * time; a search from each task took 29 s for 10,000 tasks behind one cycle.
 */
function findCycleGroups(parents: Parents): Map<string, ReadonlySet<string>> {
  const found = new Map<string, ReadonlySet<string>>();
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const isOpen = new Set<string>();
  const visits: Visit[] = [];
  const lower = (name: string, to: number): unknown => lowest.set(name, Math.min(lowest.get(name) ?? to, to));
  const enter = (name: string): void => {
    order.set(name, order.size);
    lower(name, order.size - 1);
    open.push(name);
    isOpen.add(name);
    visits.push({ name, parents: parents.get(name) ?? [], next: 0 });
  };
  const close = (root: string): void => {
    const group = open.splice(open.lastIndexOf(root));
    for (const name of group) isOpen.delete(name);
    if (group.length === 1 && !parents.get(root)?.includes(root)) return;
    const members = new Set(group);
    for (const name of group) found.set(name, members);
  };
  for (const first of parents.keys()) {
    if (!order.has(first)) enter(first);
    for (let visit = visits.at(-1); visit !== undefined; visit = visits.at(-1)) {
      const parent = visit.parents[visit.next++];
      if (parent === undefined) {
        visits.pop();
        const low = lowest.get(visit.name) ?? 0;
        if (low === order.get(visit.name)) close(visit.name);
        else lower(visits.at(-1)?.name ?? visit.name, low);
      } else if (!order.has(parent)) enter(parent);
      else if (isOpen.has(parent)) lower(visit.name, order.get(parent) ?? 0);
    }
  }
  return found;
}

/** Names of the parents in this job that give a token for the same instant. */
function parentsNow(task: TaskDefinition): string[] {
  const here = task.edges.filter(({ parent, offsetMs }) => parent.local && parent.kind === 'task' && offsetMs === 0);
  return here.map(({ parent }) => parent.name);
}

/** The tasks on a path from this task back to itself, within its group. */
function cycleFrom(start: string, parents: Parents, group: ReadonlySet<string>): string[] {
  const cameBy = new Map<string, string>();
  const open = [start];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const parent of parents.get(at) ?? []) {
      if (parent === start) return wayBack(at, start, cameBy);
      if (cameBy.has(parent) || !group.has(parent)) continue;
      cameBy.set(parent, at);
      open.push(parent);
    }
  }
  return [start];
}

function wayBack(last: string, start: string, cameBy: ReadonlyMap<string, string>): string[] {
  const way = [last];
  for (let at = last; at !== start; ) {
    at = cameBy.get(at) ?? start;
    way.push(at);
  }
  return way.toReversed();
}
