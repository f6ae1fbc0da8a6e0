/** Data of one job: how it fares and its document; its graph; the tokens of one instant. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Job = TenantAnswer<'GET /api/jobs/{id}'>;
export type Graph = TenantAnswer<'GET /api/jobs/{id}/graph'>;

export function useJob(id: string) {
  return useQuery({
    queryKey: keys.jobState(id, 'job'),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}', { params: { id }, signal }),
  });
}

/** Nodes and edges; the states are the tokens' (`useTokensAt`), which change far more often. */
export function useGraph(id: string) {
  return useQuery({
    queryKey: keys.jobWritten(id, 'graph'),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}/graph', { params: { id }, signal }),
  });
}

/** The latest instants, newest first, each with its state. */
export function useInstants(id: string, limit: number) {
  return useQuery({
    queryKey: keys.jobState(id, 'instants', limit),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}/instants', { params: { id }, query: { limit }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function useTokensAt(id: string, instant: string | undefined) {
  return useQuery({
    queryKey: keys.jobState(id, 'tokens', instant),
    queryFn: ({ signal }) =>
      tenant('GET /api/jobs/{id}/tokens/{instant}', { params: { id, instant: instant ?? '' }, signal }),
    enabled: instant !== undefined,
    placeholderData: keepPreviousData,
  });
}
