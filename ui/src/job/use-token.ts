/** Data of one token: its runs, newest first, and why it stands as it does. */
import { useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type TokenRun = TenantAnswer<'GET /api/tasks/{id}/runs/{instant}'>[number];

interface Token {
  readonly job: string;
  readonly task: string;
  readonly instant: string;
}

export function useTokenRuns({ job, task, instant }: Token) {
  return useQuery({
    queryKey: keys.jobState(job, 'token runs', task, instant),
    queryFn: ({ signal }) => tenant('GET /api/tasks/{id}/runs/{instant}', { params: { id: task, instant }, signal }),
  });
}

export function useWhyToken({ job, task, instant }: Token) {
  return useQuery({
    queryKey: keys.jobState(job, 'why', task, instant),
    queryFn: ({ signal }) => tenant('GET /api/explain/token/{id}', { params: { id: `${task}@${instant}` }, signal }),
  });
}
