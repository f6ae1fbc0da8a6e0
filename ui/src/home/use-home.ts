/** Queries of the home page. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type Overview = TenantAnswer<'GET /api/overview'>;
export type Activity = TenantAnswer<'GET /api/activity'>;

export function useOverview() {
  return useQuery({ queryKey: keys.overview, queryFn: ({ signal }) => tenant('GET /api/overview', { signal }) });
}

export function useActivity(minutes: number) {
  return useQuery({
    queryKey: [...keys.activity, minutes],
    queryFn: ({ signal }) => tenant('GET /api/activity', { query: { minutes }, signal }),
    placeholderData: keepPreviousData,
  });
}
