/**
 * The rows of a job's grid around a time, a page at a time: pages in sight are read, and read again when something
 * changes; others are kept for a while, some dozens of them.
 */
import { type QueryClient, useQueries, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { type TenantAnswer, tenant } from '../../client.ts';
import { keys } from '../../queries.ts';
import {
  begin,
  type Chain,
  learn,
  newerRows,
  type Page,
  pagesInSight,
  reachesNewest,
  reachesOldest,
  totalRows,
} from './pages.ts';
import type { Range } from './window.ts';

type Answer = TenantAnswer<'GET /api/jobs/{id}/grid'>;
export type GridItem = Answer['items'][number];
export type GridTask = Answer['tasks'][number];

const keptPages = 40;

function pageQuery(job: string, { side, cursor, limit }: Page) {
  const query = { limit, ...(side === 'older' ? { before: cursor } : { after: cursor }) };
  return {
    queryKey: keys.jobState(job, 'grid', side, cursor),
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      tenant('GET /api/jobs/{id}/grid', { params: { id: job }, query, signal }),
  };
}

export interface GridPages {
  /** How many rows there are, as far as is known. */
  readonly total: number;
  /** How many of them are newer than the time. */
  readonly newer: number;
  /** Whether the newest instant is the first row. */
  readonly newestOnTop: boolean;
  /** Whether there are no more rows than `total`. */
  readonly oldestKnown: boolean;
  readonly tasks: readonly GridTask[] | undefined;
  /** Undefined for one that has not been read. */
  readonly itemAt: (row: number) => GridItem | undefined;
  readonly error: Error | null;
  readonly refetch: () => unknown;
}

export function useGridPages(job: string, at: number, rows: Range): GridPages {
  const [chain, setChain] = useState<Chain>(() => begin(at));
  // half a screen or so ahead
  const ahead = Math.ceil((rows.end - rows.first) / 2);
  const sight = pagesInSight(chain, rows.first - ahead, rows.end + ahead);
  const answers = useQueries({ queries: sight.map(({ page }) => pageQuery(job, page)) });
  const learned = sight.reduce((known, { page }, i) => {
    const data = answers[i]?.data;
    return data === undefined ? known : learn(known, page, data);
  }, chain);
  if (learned !== chain) setChain(learned);
  useKeepFew(job, sight.map(({ page }) => page.cursor).join(' '));

  const tasks = useSteady(answers.find(({ data }) => data !== undefined)?.data?.tasks);
  const loaded = sight.map(({ row }, i) => ({ row, items: answers[i]?.data?.items ?? [] }));
  const failed = answers.find(({ error, data }) => error !== null && data === undefined);
  return {
    total: totalRows(chain),
    newer: newerRows(chain),
    newestOnTop: reachesNewest(chain),
    oldestKnown: reachesOldest(chain),
    tasks,
    itemAt: (row) => {
      const page = loaded.find(({ row: first, items }) => row >= first && row < first + items.length);
      return page?.items[row - page.row];
    },
    error: failed?.error ?? null,
    refetch: () => failed?.refetch(),
  };
}

/** The tasks are the same in every page of a version of the job: one list, however many pages say it. */
function useSteady(tasks: readonly GridTask[] | undefined): readonly GridTask[] | undefined {
  const [steady, setSteady] = useState(tasks);
  const same = tasks === undefined || (steady !== undefined && nameOf(steady) === nameOf(tasks));
  if (!same) setSteady(tasks);
  return same ? steady : tasks;
}

function nameOf(tasks: readonly GridTask[]): string {
  return tasks.map(({ id }) => id).join(' ');
}

/** Keeps only a few pages that are out of sight, so that scrolling through years of instants needs little memory. */
function useKeepFew(job: string, sight: string): void {
  const client = useQueryClient();
  const prefix = useMemo(() => keys.jobState(job, 'grid'), [job]);
  useEffect(() => {
    if (sight !== '') forgetOldest(client, prefix);
  }, [client, prefix, sight]);
}

function forgetOldest(client: QueryClient, prefix: readonly unknown[]): void {
  const cache = client.getQueryCache();
  const idle = cache.findAll({ queryKey: prefix, type: 'inactive' });
  const oldestFirst = idle.sort((a, b) => a.state.dataUpdatedAt - b.state.dataUpdatedAt);
  for (const query of oldestFirst.slice(0, Math.max(0, idle.length - keptPages))) cache.remove(query);
}
