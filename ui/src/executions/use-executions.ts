/**
 * Queries of executions: lists, and one with its history. A page of an execution under way also polls, because a commit need not
 * make an event.
 */
import { keepPreviousData, useQueries, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { type TenantAnswer, tenant } from '../client.ts';
import { keys } from '../queries.ts';
import { blocksOf, entriesPerBlock } from './history/blocks.ts';

export type ListedExecution = TenantAnswer<'GET /api/executions'>['items'][number];
export type Execution = TenantAnswer<'GET /api/executions/{id}'>;
export type Node = Execution['nodes'][number];
export type HistoryEntry = TenantAnswer<'GET /api/executions/{id}/history'>['items'][number];

/** Of the views of one execution. */
export interface ExecutionViewProps {
  /** As it was at the revision that is shown. */
  readonly execution: Execution;
  /** As it is now. */
  readonly latest: Execution;
}

const pollMs = 1_500;
const listPollMs = 3_000;

export function hasEnded({ status }: Pick<ListedExecution, 'status'>): boolean {
  return status === 'done' || status === 'failed' || status === 'cancelled';
}

export interface ExecutionFilter {
  readonly flow?: string | undefined;
  readonly version?: number | undefined;
  readonly status?: string | undefined;
  readonly label?: string | undefined;
  readonly key?: string | undefined;
  readonly created_after?: string | undefined;
  readonly created_before?: string | undefined;
}

interface Page extends ExecutionFilter {
  readonly parent?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export function useExecutions(page: Page) {
  return useQuery({
    queryKey: [...keys.executions, page],
    queryFn: ({ signal }) => tenant('GET /api/executions', { query: page, signal }),
    refetchInterval: listPollMs,
    placeholderData: keepPreviousData,
  });
}

/** As it is now. */
export function useExecution(id: string) {
  return useQuery({
    queryKey: keys.execution(id),
    queryFn: ({ signal }) => tenant('GET /api/executions/{id}', { params: { id }, signal }),
    refetchInterval: ({ state: { data } }) => (data !== undefined && hasEnded(data) ? false : pollMs),
  });
}

/** As it was at a revision, which never changes. */
export function useExecutionAt(id: string, rev: number | undefined) {
  return useQuery({
    queryKey: ['execution at', id, rev],
    queryFn: ({ signal }) => tenant('GET /api/executions/{id}', { params: { id }, query: { rev }, signal }),
    enabled: rev !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
}

export function useDocument(id: string, rev: number) {
  return useQuery({
    queryKey: ['execution document', id, rev],
    queryFn: ({ signal }) => tenant('GET /api/executions/{id}/document', { params: { id }, query: { rev }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The newest entries up to a revision, oldest first: read in blocks, of which all but the last never change. */
export function useHistory(id: string, rev: number, most: number) {
  const queries = blocksOf(rev, most).map(({ after, upTo }) => ({
    queryKey: ['execution history', id, after, upTo],
    queryFn: async ({ signal }: { readonly signal: AbortSignal }) => {
      const query = { after, limit: entriesPerBlock };
      return (await tenant('GET /api/executions/{id}/history', { params: { id }, query, signal })).items;
    },
    staleTime: Number.POSITIVE_INFINITY,
  }));
  const combine = useCallback(
    (results: readonly UseQueryResult<HistoryEntry[]>[]) => ({
      data: results.every(({ data }) => data !== undefined)
        ? results.flatMap(({ data = [] }) => data).filter((entry) => entry.rev <= rev && entry.rev > rev - most)
        : undefined,
      error: results.find((result) => result.error !== null)?.error ?? null,
      refetch: () => Promise.all(results.map((result) => result.refetch())),
    }),
    [rev, most],
  );
  const read = useQueries({ queries, combine });
  // a commit makes another newest block: what was read before stays on the page meanwhile
  const [kept, keep] = useState<{ readonly id: string; readonly data: HistoryEntry[] }>();
  if (read.data !== undefined && (kept?.id !== id || kept.data !== read.data)) keep({ id, data: read.data });
  return { ...read, data: read.data ?? (kept?.id === id ? kept.data : undefined) };
}

export function useExecutionWhy(id: string, rev: number) {
  return useQuery({
    queryKey: keys.execution(id, 'why', rev),
    queryFn: ({ signal }) => tenant('GET /api/explain/execution/{id}', { params: { id }, signal }),
    staleTime: 0,
    placeholderData: keepPreviousData,
  });
}
