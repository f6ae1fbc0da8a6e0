/**
 * Checks a text and previews saving it. YAML syntax is checked here at once; the server checks everything else by a dry run,
 * 300 ms after the last change. A request that is out of date is aborted.
 */
import { keepPreviousData, type QueryKey, useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo } from 'react';
import { useSettled } from '../kit/settled.ts';
import { type PlacedFault, placeFault, readText } from './fault-places.ts';

/** `A`: what saving would do. */
export interface Check<A> {
  readonly faults: readonly PlacedFault[];
  readonly warnings: readonly PlacedFault[];
  /** The result of saving the last text without faults. */
  readonly answer: A | undefined;
  /** Whether all of this is about the current text. */
  readonly isCurrent: boolean;
  /** Why the check failed, if not because of the document. */
  readonly error: Error | undefined;
}

interface Fault {
  readonly path: string;
  readonly message: string;
}

/** What the server says about a text. */
export interface Checked<A> {
  readonly faults: readonly Fault[];
  readonly warnings: readonly Fault[];
  readonly answer: A | undefined;
}

const settleMs = 300;
const none: readonly PlacedFault[] = [];
export const yamlHeaders = { 'content-type': 'application/yaml' };

interface Wanted<A> {
  readonly text: string;
  readonly isOn: boolean;
  /** What the answer depends on besides the text, for example the version of the job. */
  readonly on: QueryKey;
  readonly ask: (text: string, signal: AbortSignal) => Promise<Checked<A>>;
}

export function useCheck<A>({ text, isOn, on, ask }: Wanted<A>): Check<A> {
  const settled = useSettled(text, settleMs);
  const seen = useDeferredValue(text);
  const syntax = useMemo(() => readText(seen), [seen]);
  const query = useQuery({
    queryKey: ['dry run', on, settled],
    queryFn: ({ signal }) => ask(settled, signal),
    enabled: isOn && syntax.faults.length === 0,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const { data, error } = query;
  const found = useMemo(() => {
    const { document } = readText(settled);
    const place = (fault: Fault) => placeFault(settled, document, fault);
    const inOrder = (faults: readonly Fault[] = []) => faults.map(place).sort((a, b) => a.from - b.from);
    return { faults: inOrder(data?.faults), warnings: inOrder(data?.warnings) };
  }, [settled, data]);
  // a repeated request does not count as pending, so that the button stays enabled
  const isAnswered = !query.isPlaceholderData && (data !== undefined || error !== null);
  const isCurrent = settled === text && seen === text && isAnswered;
  const isBroken = syntax.faults.length > 0;
  return {
    faults: isBroken ? syntax.faults : found.faults,
    warnings: isBroken ? none : found.warnings,
    answer: data?.answer,
    isCurrent: isBroken ? seen === text : isCurrent,
    error: error ?? undefined,
  };
}
