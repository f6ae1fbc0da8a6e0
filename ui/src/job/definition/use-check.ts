/**
 * What is wrong with a text, and what saving it would do. Whether it is YAML is seen here, at once; everything else the
 * server says by a dry run, as soon as nobody has typed for a moment. A question that is out of date is given up.
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
  /** What the last text that had no faults would do. */
  readonly answer: Applied | undefined;
  /** Whether all of this is about the text as it stands. */
  readonly isCurrent: boolean;
  /** Why the server could not tell, when it is not the document's fault. */
  readonly error: Error | undefined;
}

const settleMs = 300;
const none: readonly PlacedFault[] = [];
export const yamlHeaders = { 'content-type': 'application/yaml' };

interface Wanted {
  readonly text: string;
  readonly isOn: boolean;
  /** What the answer depends on besides the text, such as the job's version. */
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
  // that it is being asked again changes nothing: a button must not give way under the finger
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
