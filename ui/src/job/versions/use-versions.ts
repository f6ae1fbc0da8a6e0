/** Data of a job's versions: the list, and one by its number. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { CallFailed } from '../../../../src/http/client.ts';
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

/** A version never changes once it is there; null where there is none of that number. */
export function useVersion(job: string, version: number | undefined) {
  return useQuery({
    queryKey: ['job version', job, version],
    queryFn: async ({ signal }) => {
      const params = { id: job, version: version ?? 0 };
      return tenant('GET /api/jobs/{id}/versions/{version}', { params, signal }).catch(nullIfMissing);
    },
    enabled: version !== undefined && Number.isInteger(version) && version > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function nullIfMissing(error: unknown): null {
  if (error instanceof CallFailed && error.status === 404) return null;
  throw error;
}
