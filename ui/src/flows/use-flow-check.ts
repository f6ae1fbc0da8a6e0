/** The dry run of a flow's document, and saving it. */
import { useQueryClient } from '@tanstack/react-query';
import { type QueryKey, useMutation } from '@tanstack/react-query';
import { CallFailed } from '../../../src/http/client.ts';
import { type TenantAnswer, tenant } from '../client.ts';
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

/** A refusal because of the document is an answer: it has the faults. */
async function checkFlow(text: string, signal: AbortSignal): Promise<Checked<AppliedFlow>> {
  try {
    const query = { dry_run: 'true' } as const;
    const answer = await tenant('POST /api/flows', { query, body: text, headers: yamlHeaders, signal });
    return { faults: [], warnings: answer.warnings, answer };
  } catch (error) {
    const faults = error instanceof CallFailed && error.status === 400 ? error.problem?.faults : undefined;
    if (faults === undefined) throw error;
    return { faults, warnings: [], answer: undefined };
  }
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
