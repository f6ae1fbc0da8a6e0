/** All runs of one instant, as they come. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { tenant } from '../../client.ts';
import { keys } from '../../queries.ts';

export const mostRuns = 1_000;

export function useInstantRuns(job: string, instant: string | undefined) {
  return useQuery({
    queryKey: keys.jobState(job, 'instant runs', instant),
    queryFn: ({ signal }) =>
      tenant('GET /api/jobs/{id}/runs/{instant}', {
        params: { id: job, instant: instant ?? '' },
        query: { limit: mostRuns },
        signal,
      }),
    enabled: instant !== undefined,
    placeholderData: keepPreviousData,
  });
}
