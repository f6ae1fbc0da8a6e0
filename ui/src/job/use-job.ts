/** Queries of one job: its state, its document, its graph, and the tokens of one instant. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

/** The state of the job. The document is a separate request, because it is long and rarely changes. */
export type Job = Omit<TenantAnswer<'GET /api/jobs/{id}'>, 'raw_definition'>;
/** The properties of each view of a job's page. */
export interface JobViewProps {
  readonly job: Job;
}
export type Graph = TenantAnswer<'GET /api/jobs/{id}/graph'>;

export function useJob(id: string) {
  return useQuery({
    queryKey: keys.jobState(id, 'job'),
    queryFn: ({ signal }): Promise<Job> =>
      tenant('GET /api/jobs/{id}', { params: { id }, query: { document: 'false' }, signal }),
  });
}

/** The newest version of its document, as JSON. */
export function useDocument(id: string) {
  return useQuery({
    queryKey: keys.jobWritten(id, 'document'),
    queryFn: async ({ signal }) => (await tenant('GET /api/jobs/{id}', { params: { id }, signal })).raw_definition,
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
