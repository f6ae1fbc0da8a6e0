/** Data of the list of jobs, and of projects. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type JobRow = TenantAnswer<'GET /api/jobs/overview'>['items'][number];

export const shows = ['all', 'running', 'failing', 'paused'] as const;
type Show = (typeof shows)[number];

export interface JobsFilter {
  readonly q: string;
  readonly show: Show;
  readonly limit: number;
  readonly project?: string;
}

export function useJobs({ q, ...filter }: JobsFilter) {
  const query = q.trim() === '' ? filter : { ...filter, q };
  return useQuery({
    queryKey: [...keys.jobs, query],
    queryFn: ({ signal }) => tenant('GET /api/jobs/overview', { query, signal }),
    placeholderData: keepPreviousData,
  });
}

export type Project = TenantAnswer<'GET /api/projects/{id}'>;

export function useProject(id: string) {
  return useQuery({
    queryKey: [...keys.projects, id],
    queryFn: ({ signal }) => tenant('GET /api/projects/{id}', { params: { id }, signal }),
  });
}
