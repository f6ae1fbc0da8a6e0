/** The dry run of a job's document, and the schema that the editor completes from. */
import { type QueryKey, useQuery } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../../client.ts';
import type { Schema } from '../../document/schema.ts';
import { type Check, type Checked, useCheck, yamlHeaders } from '../../document/use-check.ts';

export type Applied = TenantAnswer<'POST /api/jobs'>;

interface Wanted {
  readonly text: string;
  readonly isOn: boolean;
  /** What the answer depends on besides the text, for example the version of the job. */
  readonly on: QueryKey;
}

export function useJobCheck(wanted: Wanted): Check<Applied> {
  return useCheck({ ...wanted, on: ['job', ...wanted.on], ask: checkJob });
}

async function checkJob(text: string, signal: AbortSignal): Promise<Checked<Applied>> {
  const { faults, applied } = await tenant('POST /api/jobs/check', { body: text, headers: yamlHeaders, signal });
  return { faults, warnings: applied?.warnings ?? [], answer: applied ?? undefined };
}

export function useJobSchema(): Schema | undefined {
  const query = useQuery({
    queryKey: ['document schema', 'job'],
    queryFn: ({ signal }) => tenant('GET /api/jobs/schema', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return query.data;
}
