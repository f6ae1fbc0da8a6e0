/** The rows of a timeline: the tasks of a job as they follow from one another, each with its runs at one instant. */
import type { TenantAnswer } from '../../client.ts';
import { layersOf, withoutCircles } from '../graph/layers.ts';
import type { Graph } from '../use-job.ts';

export type InstantRun = TenantAnswer<'GET /api/jobs/{id}/runs/{instant}'>[number];

export interface TimelineRow {
  readonly task: string;
  readonly name: string;
  /** In the order they were queued. */
  readonly runs: readonly InstantRun[];
}

/** Tasks that were removed since, but ran at that instant, come last. */
export function rowsOf(job: string, graph: Graph, runs: readonly InstantRun[]): TimelineRow[] {
  const own = inOrder(graph).filter((node) => node.kind === 'task' && node.job_id === job);
  const byTask = groupedBy(runs, (run) => run.task_id);
  const known = new Set(own.map(({ id }) => id));
  const rest = [...byTask].filter(([task]) => !known.has(task));
  return [
    ...own.map(({ id, name }) => ({ task: id, name, runs: byTask.get(id) ?? [] })),
    ...rest.map(([task, of]) => ({ task, name: of[0]?.name ?? task, runs: of })),
  ];
}

/** By layers of the graph. */
function inOrder({ nodes, edges }: Graph): Graph['nodes'] {
  const numbers = new Map(nodes.map(({ id }, n) => [id, n]));
  const links = edges.flatMap(({ from, to }) => {
    const [a, b] = [numbers.get(from), numbers.get(to)];
    return a === undefined || b === undefined || a === b ? [] : [{ from: a, to: b }];
  });
  const layers = layersOf(nodes.length, withoutCircles(nodes.length, links));
  const layerOf = ({ id }: { readonly id: string }): number => layers[numbers.get(id) ?? 0] ?? 0;
  return nodes.toSorted((a, b) => layerOf(a) - layerOf(b));
}

/**
 * The critical path of an instant: the run that ended last, before it the run that ended last among its parents and its own
 * earlier attempts, and so on.
 */
export function criticalPath(edges: Graph['edges'], runs: readonly InstantRun[]): ReadonlySet<string> {
  const parents = groupedBy(edges, ({ to }) => to);
  const byTask = groupedBy(runs, (run) => run.task_id);
  const path = new Set<string>();
  let at = lastToEnd(runs);
  while (at !== undefined && !path.has(at.task_run_id)) {
    path.add(at.task_run_id);
    const { queued_datetime: queued, task_id: task } = at;
    const before = [task, ...(parents.get(task) ?? []).map(({ from }) => from)].flatMap((id) => byTask.get(id) ?? []);
    at = lastToEnd(before.filter(({ finish_datetime: end }) => end !== null && Date.parse(end) <= Date.parse(queued)));
  }
  return path;
}

function lastToEnd(runs: readonly InstantRun[]): InstantRun | undefined {
  let last: InstantRun | undefined;
  for (const run of runs) if (endOf(run) > (last === undefined ? Number.NEGATIVE_INFINITY : endOf(last))) last = run;
  return last;
}

/** A run that has not ended sorts after all that have. */
function endOf({ finish_datetime: end, queued_datetime: queued }: InstantRun): number {
  return end === null ? Date.parse(queued) + Number.MAX_SAFE_INTEGER / 2 : Date.parse(end);
}

function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
