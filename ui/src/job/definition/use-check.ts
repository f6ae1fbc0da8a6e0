/**
 * Checks a text and previews saving it. YAML syntax is checked here at once; the server checks everything else by a dry run,
 * 300 ms after the last change. A request that is out of date is aborted.
 */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo } from 'react';
import { type TenantAnswer, tenant } from '../../client.ts';
import { useSettled } from '../../kit/settled.ts';
import { type PlacedFault, placeFault, readText } from './fault-places.ts';
import type { Schema } from './schema.ts';

export type Applied = TenantAnswer<'POST /api/jobs'>;

export interface Check {
  readonly faults: readonly PlacedFault[];
  readonly warnings: readonly PlacedFault[];
  /** The result of saving the last text without faults. */
  readonly answer: Applied | undefined;
  /** Whether all of this is about the current text. */
  readonly isCurrent: boolean;
  /** Why the check failed, if not because of the document. */
  readonly error: Error | undefined;
}

const settleMs = 300;
const none: readonly PlacedFault[] = [];
export const yamlHeaders = { 'content-type': 'application/yaml' };

interface Wanted {
  readonly text: string;
  readonly isOn: boolean;
  /** What the answer depends on besides the text, for example the job's version. */
  readonly on: string | number;
}

export function useCheck({ text, isOn, on }: Wanted): Check {
  const settled = useSettled(text, settleMs);
  const seen = useDeferredValue(text);
  const syntax = useMemo(() => readText(seen), [seen]);
  const query = useQuery({
    queryKey: ['dry run', on, settled],
    queryFn: ({ signal }) => tenant('POST /api/jobs/check', { body: settled, headers: yamlHeaders, signal }),
    enabled: isOn && syntax.faults.length === 0,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const { data, error } = query;
  const found = useMemo(() => {
    const { document } = readText(settled);
    const place = (fault: { path: string; message: string }) => placeFault(settled, document, fault);
    const inOrder = (faults: readonly { path: string; message: string }[] = []) =>
      faults.map(place).sort((a, b) => a.from - b.from);
    return { faults: inOrder(data?.faults), warnings: inOrder(data?.applied?.warnings) };
  }, [settled, data]);
  // a repeated request does not count as pending, so that the button stays enabled
  const isAnswered = !query.isPlaceholderData && (data !== undefined || error !== null);
  const isCurrent = settled === text && seen === text && isAnswered;
  const isBroken = syntax.faults.length > 0;
  return {
    faults: isBroken ? syntax.faults : found.faults,
    warnings: isBroken ? none : found.warnings,
    answer: data?.applied ?? undefined,
    isCurrent: isBroken ? seen === text : isCurrent,
    error: error ?? undefined,
  };
}

export function useSchema(): Schema | undefined {
  const query = useQuery({
    queryKey: ['document schema'],
    queryFn: ({ signal }) => tenant('GET /api/jobs/schema', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return query.data;
}
