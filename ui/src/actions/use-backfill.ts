/** Queries of backfills: one backfill, the backfills of a job, and a preview of a new one. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';
import type { Priority } from './priority-field.tsx';
import { useAction } from './use-action.ts';

export type Backfill = TenantAnswer<'GET /api/backfills/{id}'>;

export interface BackfillPlan {
  readonly first: string;
  readonly last: string;
  readonly triggers?: string[];
  readonly order: Backfill['order'];
  readonly priority: Priority;
  readonly only: Backfill['only'];
  readonly name?: string;
}

export function useBackfill(job: string, id: string) {
  return useQuery({
    queryKey: keys.jobState(job, 'backfills', id),
    queryFn: ({ signal }) => tenant('GET /api/backfills/{id}', { params: { id }, signal }),
  });
}

export function useBackfills(job: string, limit: number) {
  return useQuery({
    queryKey: keys.jobState(job, 'backfills', { limit }),
    queryFn: ({ signal }) => tenant('GET /api/jobs/{id}/backfills', { params: { id: job }, query: { limit }, signal }),
    placeholderData: keepPreviousData,
  });
}

const listed = 12;

/** Its key is outside of the job's keys, so that events of a busy job do not repeat it while a user reads it. */
export function useBackfillPreview(job: string, plan: BackfillPlan | undefined) {
  return useQuery({
    queryKey: ['backfill preview', job, plan],
    queryFn: async ({ signal }) => {
      if (plan === undefined) throw new Error('there is no plan yet');
      const { name: _, ...unnamed } = plan;
      const answer = await tenant('POST /api/jobs/{id}/backfill', {
        params: { id: job },
        body: { ...unnamed, dry_run: true, limit: listed },
        signal,
      });
      if (!('dry_run' in answer)) throw new Error('the server did not answer with a dry run');
      return answer;
    },
    enabled: plan !== undefined,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
}

export function useCancelBackfill(job: string, id: string) {
  return useAction({
    job,
    outdates: [keys.backfills],
    act: () => tenant('POST /api/backfills/{id}/cancel', { params: { id } }),
  });
}
