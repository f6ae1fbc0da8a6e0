/** Words of operations on many executions. */
import { sentenceOf } from '../../kit/failure.tsx';
import type { ExecutionFilter } from '../use-executions.ts';

export type Action = 'cancel' | 'kill' | 'pause' | 'resume' | 'retry' | 'skip';

interface Count {
  readonly data: { readonly matched: number; readonly isComplete: boolean } | undefined;
  readonly error: Error | null;
}

export function countWords({ data, error }: Count): string {
  if (error !== null) return sentenceOf(error);
  if (data === undefined) return 'Counting…';
  const { matched, isComplete } = data;
  if (matched === 0) return 'No execution matches.';
  const number = `${matched.toLocaleString('en')}${isComplete ? '' : ' or more'}`;
  return matched === 1 && isComplete ? '1 execution matches.' : `${number} executions match.`;
}

export function isSearchable(filter: ExecutionFilter): boolean {
  return Object.keys(filter).length > 0;
}

const names: Readonly<Record<keyof ExecutionFilter, string>> = {
  flow: 'of the flow',
  version: 'of version',
  status: 'with the status',
  label: 'with the label',
  key: 'with the key',
  created_after: 'started after',
  created_before: 'started before',
};

export function describeFilter(filter: ExecutionFilter): string {
  const entries = Object.entries(filter) as [keyof ExecutionFilter, string | number][];
  const parts = entries.map(([name, value]) => `${names[name]} ${String(value).replaceAll(',', ' or ')}`);
  return parts.length === 0 ? 'All executions.' : `Executions ${parts.join(', ')}.`;
}
