/** Data of a job's versions: the list, and one by its number. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../../client.ts';
import { keys } from '../../queries.ts';

export type Version = TenantAnswer<'GET /api/jobs/{id}/versions'>['items'][number];

export function useVersions(job: string, limit: number) {
  return useQuery({
    queryKey: keys.jobWritten(job, 'versions', { limit }),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}/versions', { params: { id: job }, query: { limit }, signal }),
    placeholderData: keepPreviousData,
  });
}

/**
 * A version never changes once it is there; null where there is none of that number. The list is asked first: a browser
 * reports a 404 on its console.
 */
export function useVersion(job: string, version: number | undefined) {
  return useQuery({
    queryKey: ['job version', job, version],
    queryFn: async ({ signal }) => {
      const wanted = version ?? 0;
      const query = { limit: 1, before: wanted + 1 };
      const { items } = await tenant('GET /api/jobs/{id}/versions', { params: { id: job }, query, signal });
      if (items[0]?.version !== wanted) return null;
      return tenant('GET /api/jobs/{id}/versions/{version}', { params: { id: job, version: wanted }, signal });
    },
    enabled: version !== undefined && Number.isInteger(version) && version > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
