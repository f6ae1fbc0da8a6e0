/**
 * Sorts the tasks of a job for the grid: parents before children, layer by layer, and by name within a layer. Cycles are
 * allowed, because a task may wait for its own earlier runs. If every remaining task waits, the next one is a task that waits
 * only for other instants, else the first by name.
 */
import { groupBy } from '../../kernel/group-by.ts';

export interface NamedTask {
  readonly id: string;
  readonly name: string;
}

export interface OrderingEdge {
  readonly parent_id: string;
  readonly child_id: string;
  readonly offset_ms: number;
}

/** The number of parents that are not placed yet: all of them, and those without an offset. */
interface Waits {
  all: number;
  now: number;
}

export function inOrder<T extends NamedTask>(tasks: readonly T[], edges: readonly OrderingEdge[]): T[] {
  const left = new Map(byName(tasks).map((task) => [task.id, task]));
  const own = edges.filter(
    ({ parent_id: parent, child_id: child }) => parent !== child && left.has(parent) && left.has(child),
  );
  const waits = new Map([...left.keys()].map((id): [string, Waits] => [id, { all: 0, now: 0 }]));
  for (const edge of own) count(waits, edge, 1);
  const leading = groupBy(own, (edge) => edge.parent_id);
  const placed: T[] = [];
  let layer = [...left.values()].filter(({ id }) => waits.get(id)?.all === 0);
  while (left.size > 0) {
    const taken = layer.length > 0 ? layer : [pickWaiting(left, waits)];
    const freed = new Set<string>();
    for (const { id } of taken) {
      left.delete(id);
      for (const edge of leading.get(id) ?? []) if (count(waits, edge, -1) === 0) freed.add(edge.child_id);
    }
    placed.push(...taken);
    layer = byName([...freed].flatMap((id) => left.get(id) ?? []));
  }
  return placed;
}

function byName<T extends NamedTask>(tasks: readonly T[]): T[] {
  return tasks.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the number of parents that are left. */
function count(waits: ReadonlyMap<string, Waits>, { child_id: child, offset_ms }: OrderingEdge, step: 1 | -1): number {
  const of = waits.get(child) ?? { all: 0, now: 0 };
  of.all += step;
  if (offset_ms === 0) of.now += step;
  return of.all;
}

/** Picks the task to continue with if every remaining task waits. Called only while tasks are left. */
function pickWaiting<T extends NamedTask>(left: ReadonlyMap<string, T>, waits: ReadonlyMap<string, Waits>): T {
  const all = [...left.values()];
  const out = all.find(({ id }) => waits.get(id)?.now === 0) ?? all[0];
  if (out === undefined) throw new Error('nothing is left to place');
  return out;
}
