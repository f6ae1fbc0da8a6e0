/** Queries of the definitions of flows. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { listAll, type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';

export type ListedFlow = TenantAnswer<'GET /api/flows'>['items'][number];
export type Flow = TenantAnswer<'GET /api/flows/{name}'>;

/** Of the views of one flow. */
export interface FlowViewProps {
  readonly flow: Flow;
}

/** Counts of executions change all the time, with events for some of the changes only. */
const pollMs = 5_000;

export function useFlows() {
  return useQuery({
    queryKey: [...keys.flows, 'list'],
    queryFn: async ({ signal }) => {
      const { items } = await listAll((cursor, limit) =>
        tenant('GET /api/flows', { query: { cursor, limit }, signal }),
      );
      return items;
    },
    refetchInterval: pollMs,
  });
}

/** Without a version, the newest one. */
export function useFlow(name: string, version?: number) {
  return useQuery({
    queryKey: keys.flow(name, version ?? 'newest'),
    queryFn: ({ signal }) => tenant('GET /api/flows/{name}', { params: { name }, query: { version }, signal }),
    placeholderData: keepPreviousData,
  });
}

/** A version never changes. */
export function useFlowVersion(name: string, version: number | undefined) {
  return useQuery({
    queryKey: ['flow version', name, version],
    queryFn: ({ signal }) => tenant('GET /api/flows/{name}', { params: { name }, query: { version }, signal }),
    enabled: version !== undefined && version > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function flowHref(name: string, rest = ''): string {
  return `/flows/${encodeURIComponent(name)}${rest}`;
}

/** The name of a flow in an address. The router has decoded all characters but those that delimit parts of an address. */
export function flowNameIn(part: string): string {
  return part.replaceAll(/%(?:2[3-6BCF]|3[ABDF]|40)/gi, decodeURIComponent);
}
