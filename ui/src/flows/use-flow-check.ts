/** The dry run of a flow's document, and saving it. */
import { type QueryKey, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type TenantAnswer, tenant } from '../client.ts';
import type { Schema } from '../document/schema.ts';
import { type Check, type Checked, useCheck, yamlHeaders } from '../document/use-check.ts';
import { useOnce } from '../kit/once.ts';
import { keys } from '../queries.ts';

export type AppliedFlow = TenantAnswer<'POST /api/flows'>;

interface Wanted {
  readonly text: string;
  readonly isOn: boolean;
  readonly on: QueryKey;
}

export function useFlowCheck(wanted: Wanted): Check<AppliedFlow> {
  return useCheck({ ...wanted, on: ['flow', ...wanted.on], ask: checkFlow });
}

async function checkFlow(text: string, signal: AbortSignal): Promise<Checked<AppliedFlow>> {
  const { faults, applied } = await tenant('POST /api/flows/check', { body: text, headers: yamlHeaders, signal });
  return { faults, warnings: applied?.warnings ?? [], answer: applied ?? undefined };
}

export function useFlowSchema(): Schema | undefined {
  const query = useQuery({
    queryKey: ['document schema', 'flow'],
    queryFn: ({ signal }) => tenant('GET /api/flow-schema', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return query.data;
}

/** `onSaved` is called once the flow has been read again, so that the old text does not reappear. */
export function useSaveFlow(onSaved: (answer: AppliedFlow) => void) {
  const client = useQueryClient();
  const once = useOnce(async (text: string) => {
    const answer = await tenant('POST /api/flows', { body: text, headers: yamlHeaders });
    await client.invalidateQueries({ queryKey: keys.flows });
    return answer;
  });
  return useMutation({
    mutationFn: once,
    onSuccess: (answer) => {
      onSaved(answer);
      void client.invalidateQueries({ queryKey: keys.search });
    },
  });
}
