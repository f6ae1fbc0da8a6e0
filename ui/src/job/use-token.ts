/** Queries of one token: its runs, newest first, and the explanation of its state. */
import { useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type TokenRun = TenantAnswer<'GET /api/tasks/{id}/runs/{instant}'>[number];

interface Token {
  readonly job: string;
  readonly task: string;
  readonly instant: string;
}

/** The server sends the oldest first. */
const newestFirst = (runs: readonly TokenRun[]): readonly TokenRun[] => runs.toReversed();

export function useTokenRuns({ job, task, instant }: Token) {
  return useQuery({
    queryKey: keys.jobState(job, 'token runs', task, instant),
    queryFn: ({ signal }) => tenant('GET /api/tasks/{id}/runs/{instant}', { params: { id: task, instant }, signal }),
    select: newestFirst,
  });
}

interface WhyToken extends Omit<Token, 'instant'> {
  /** Undefined in a job that has had none yet. */
  readonly instant: string | undefined;
}

export function useWhyToken({ job, task, instant }: WhyToken) {
  const id = instant === undefined ? task : `${task}@${instant}`;
  return useQuery({
    queryKey: keys.jobState(job, 'why', task, instant),
    queryFn: ({ signal }) => tenant('GET /api/explain/token/{id}', { params: { id }, signal }),
  });
}
