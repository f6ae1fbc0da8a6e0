/** Data of runs: the newest of a job, and one. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Run = TenantAnswer<'GET /api/runs/{id}'>;

interface Filter {
  readonly state?: string | undefined;
  readonly limit: number;
}

export function useRunsOf(job: string, filter: Filter) {
  return useQuery({
    queryKey: keys.jobState(job, 'runs', filter),
    queryFn: ({ signal }) => tenant('GET /api/runs', { query: { job, ...filter }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function useRun(id: string) {
  return useQuery({
    queryKey: keys.run(id),
    queryFn: ({ signal }) => tenant('GET /api/runs/{id}', { params: { id }, signal }),
  });
}
