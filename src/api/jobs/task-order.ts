/**
 * The order in which a grid shows a job's tasks: what comes first in the graph stands first, layer by layer, and within a
 * layer by name. Cycles are allowed (a task may wait for its own past): where nothing is free any more, the order goes on
 * with a task that waits only for other instants, else with the first by name.
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

/** How many parents are not placed yet: in all, and of those whose end counts at the same instant. */
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
    const taken = layer.length > 0 ? layer : [wayOut(left, waits)];
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

/** Returns what is left in all. */
function count(waits: ReadonlyMap<string, Waits>, { child_id: child, offset_ms }: OrderingEdge, step: 1 | -1): number {
  const of = waits.get(child) ?? { all: 0, now: 0 };
  of.all += step;
  if (offset_ms === 0) of.now += step;
  return of.all;
}

/** Only called while something is left. */
function wayOut<T extends NamedTask>(left: ReadonlyMap<string, T>, waits: ReadonlyMap<string, Waits>): T {
  const all = [...left.values()];
  const out = all.find(({ id }) => waits.get(id)?.now === 0) ?? all[0];
  if (out === undefined) throw new Error('nothing is left to place');
  return out;
}
