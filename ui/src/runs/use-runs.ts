/** Queries of runs: lists, and one run with its explanation, history, attempts and environment. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Run = TenantAnswer<'GET /api/runs'>['items'][number];
export type Moment = TenantAnswer<'GET /api/runs/{id}/history'>['items'][number];
export type Environment = TenantAnswer<'GET /api/runs/{id}/environment'>;

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

interface TenantFilter extends Filter {
  readonly job?: string | undefined;
  readonly instant?: string | undefined;
  readonly cursor?: string | undefined;
}

export function useRuns(filter: TenantFilter) {
  return useQuery({
    queryKey: [...keys.runs, filter],
    queryFn: ({ signal }) => tenant('GET /api/runs', { query: filter, signal }),
    placeholderData: keepPreviousData,
  });
}

export function useRun(id: string) {
  return useQuery({
    queryKey: keys.run(id),
    queryFn: ({ signal }) => tenant('GET /api/runs/{id}', { params: { id }, signal }),
  });
}

/** Read again whenever it is opened, because it may depend on workers and limits, which no digest reports. */
export function useWhy(id: string) {
  return useQuery({
    queryKey: keys.run(id, 'why'),
    queryFn: ({ signal }) => tenant('GET /api/explain/run/{id}', { params: { id }, signal }),
    staleTime: 0,
  });
}

export function useHistory(id: string) {
  return useQuery({
    queryKey: keys.run(id, 'history'),
    queryFn: ({ signal }) => tenant('GET /api/runs/{id}/history', { params: { id }, signal }),
  });
}

/** Another attempt is another run, which only the job's digest reports. */
export function useAttempts(run: Run) {
  return useQuery({
    queryKey: run.job === null ? keys.run(run.id, 'attempts') : keys.jobState(run.job.id, 'attempts', run.id),
    queryFn: ({ signal }) => tenant('GET /api/runs/{id}/attempts', { params: { id: run.id }, signal }),
  });
}

export function useEnvironment(id: string) {
  return useQuery({
    queryKey: keys.run(id, 'environment'),
    queryFn: ({ signal }) => tenant('GET /api/runs/{id}/environment', { params: { id }, signal }),
  });
}
