/** The tasks that `run now` starts, because they wait for no other task of the job. */
import type { TenantAnswer } from '../client.ts';

type Graph = TenantAnswer<'GET /api/jobs/{id}/graph'>;

export function firstTasks(graph: Graph, job: string): readonly string[] {
  const own = new Map(
    graph.nodes.filter((node) => node.kind === 'task' && node.job_id === job).map((node) => [node.id, node.name]),
  );
  const waiting = new Set(
    graph.edges.filter((edge) => own.has(edge.from) && edge.from !== edge.to).map((edge) => edge.to),
  );
  return [...own].filter(([id]) => !waiting.has(id)).map(([, name]) => name);
}
