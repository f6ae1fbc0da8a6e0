/**
 * Durations of tasks at the latest instants. They are read again when the newest instant ends or another begins, not at every
 * run: for a busy job that would repeat the same answer all the time.
 */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { tenant } from '../../client.ts';
import { keys } from '../../queries.ts';
import { useInstants } from '../use-job.ts';

const shortlyMs = 10_000;

export function useDurations(job: string, limit: number) {
  const { data: newest } = useInstants(job, 1);
  const asOf = newest?.items.map(({ instant, finished_at }) => `${instant} ${finished_at}`).join();
  return useQuery({
    queryKey: keys.jobWritten(job, 'durations', limit, asOf),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}/duration', { params: { id: job }, query: { limit }, signal }),
    enabled: asOf !== undefined,
    gcTime: shortlyMs,
    placeholderData: keepPreviousData,
  });
}
