/** Queries of work items: tasks of people that wait for an answer. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { listAll, type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type ListedWorkitem = TenantAnswer<'GET /api/workitems'>['items'][number];
export type Workitem = TenantAnswer<'GET /api/workitems/{id}'>;

export interface WorkitemFilter {
  readonly mine?: 'true' | undefined;
  readonly team?: string | undefined;
  readonly execution?: string | undefined;
}

const pollMs = 5_000;

export function useWorkitems(filter: WorkitemFilter) {
  return useQuery({
    queryKey: [...keys.workitems, 'list', filter],
    queryFn: async ({ signal }) => {
      const { items } = await listAll((cursor, limit) =>
        tenant('GET /api/workitems', { query: { ...filter, cursor, limit }, signal }),
      );
      return items;
    },
    refetchInterval: pollMs,
    placeholderData: keepPreviousData,
  });
}

export function useWorkitem(id: string) {
  return useQuery({
    queryKey: [...keys.workitems, 'one', id],
    queryFn: ({ signal }) => tenant('GET /api/workitems/{id}', { params: { id }, signal }),
    refetchInterval: ({ state: { error } }) => (error === null ? pollMs : false),
  });
}

/** More are shown as this many and a plus. */
export const maxCounted = 99;

/** How many wait for the user, for the navigation. */
export function useMyCount(): number | undefined {
  const query = useQuery({
    queryKey: [...keys.workitems, 'mine'],
    queryFn: async ({ signal }) => {
      const { items } = await tenant('GET /api/workitems', { query: { mine: 'true', limit: maxCounted + 1 }, signal });
      return items.length;
    },
    staleTime: 60_000,
    retry: false,
  });
  return query.data;
}
