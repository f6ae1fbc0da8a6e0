/** Counts the executions of a filter, and operates on them a page at a time until none is left or a user stops it. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { type TenantAnswer, tenant } from '../../client.ts';
import { keys } from '../../queries.ts';
import type { ExecutionFilter } from '../use-executions.ts';
import type { Action } from './bulk-words.ts';

type Page = TenantAnswer<'POST /api/executions/operate'>;

export interface Progress {
  readonly matched: number;
  readonly done: number;
  readonly accepted: number;
  readonly refused: number;
  readonly failures: Page['failures'];
  readonly state: 'running' | 'stopped' | 'done' | 'failed';
  readonly error: Error | null;
}

/** Executions of one call when they are counted, and when something is done. */
const countLimit = 1_000;
const workLimit = 100;
/** Calls of a count: beyond that it says `or more`. */
const maxCounts = 20;
const maxFailures = 100;

interface Asked {
  readonly filter: ExecutionFilter;
  readonly action: Action;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly isDry: boolean;
  readonly signal: AbortSignal;
}

function operate({ filter, action, limit, cursor, isDry, signal }: Asked): Promise<Page> {
  const body = { filter, action, limit, dry_run: isDry, ...(cursor !== undefined && { cursor }) };
  return tenant('POST /api/executions/operate', { body, signal });
}

export function useBulkCount(filter: ExecutionFilter, action: Action) {
  return useQuery({
    queryKey: ['executions count', filter, action],
    queryFn: async ({ signal }) => {
      let [matched, cursor, calls] = [0, undefined as string | undefined, 0];
      do {
        const page = await operate({ filter, action, limit: countLimit, cursor, isDry: true, signal });
        matched += page.matched;
        cursor = page.next ?? undefined;
        calls++;
      } while (cursor !== undefined && calls < maxCounts);
      return { matched, isComplete: cursor === undefined };
    },
    staleTime: 0,
    gcTime: 0,
  });
}

const nothingYet: Progress = {
  matched: 0,
  done: 0,
  accepted: 0,
  refused: 0,
  failures: [],
  state: 'running',
  error: null,
};

function sum(before: Progress, page: Page): Progress {
  return {
    ...before,
    matched: before.matched + page.matched,
    done: before.done + page.done,
    accepted: before.accepted + page.accepted,
    refused: before.refused + page.refused,
    failures: [...before.failures, ...page.failures].slice(0, maxFailures),
    state: page.next === null ? 'done' : 'running',
  };
}

export function useBulk(filter: ExecutionFilter, action: Action) {
  const client = useQueryClient();
  const [progress, setProgress] = useState<Progress>();
  const stopping = useRef<AbortController>(undefined);
  // a dialog that is closed stops after the page that is under way
  useEffect(() => () => stopping.current?.abort(), []);

  const run = async (signal: AbortSignal): Promise<void> => {
    let sums = nothingYet;
    let cursor: string | undefined;
    setProgress(sums);
    try {
      do {
        const page = await operate({ filter, action, limit: workLimit, cursor, isDry: false, signal });
        sums = sum(sums, page);
        cursor = page.next ?? undefined;
        setProgress(sums);
      } while (cursor !== undefined);
    } catch (error) {
      const isStopped = signal.aborted;
      setProgress({ ...sums, state: isStopped ? 'stopped' : 'failed', error: isStopped ? null : asError(error) });
    }
    await client.invalidateQueries({ queryKey: keys.executions });
  };
  const start = (): void => {
    stopping.current = new AbortController();
    void run(stopping.current.signal);
  };
  return { progress, start, stop: () => stopping.current?.abort() };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
