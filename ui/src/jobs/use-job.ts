/** Data of one job: the job with its document and counts, and its graph. */
import { useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Job = TenantAnswer<'GET /api/jobs/{id}'>;
export type Graph = TenantAnswer<'GET /api/jobs/{id}/graph'>;

export function useJob(id: string) {
  return useQuery({
    queryKey: keys.job(id),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}', { params: { id }, signal }),
  });
}

export function useGraph(id: string) {
  return useQuery({
    queryKey: keys.graph(id),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}/graph', { params: { id }, signal }),
  });
}
