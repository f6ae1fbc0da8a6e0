/** An action on a job. Afterwards all queries that show the job are read again. */
import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useOnce } from '../kit/once.ts';
import { keys } from '../queries.ts';

interface Options<I, O> {
  readonly job: string | undefined;
  readonly act: (input: I) => Promise<O>;
  /** Query keys to invalidate, besides the job's state and the lists that count it. */
  readonly outdates?: readonly QueryKey[];
  readonly onDone?: (answer: O) => void;
}

const lists = [keys.jobs, keys.overview, keys.runs, keys.activity] as const;

export function useAction<I = void, O = unknown>({ job, act, outdates = [], onDone }: Options<I, O>) {
  const client = useQueryClient();
  const once = useOnce(act);
  return useMutation({
    mutationFn: once,
    onSuccess: (answer) => {
      onDone?.(answer);
      const names = [...lists, ...outdates, ...(job === undefined ? [] : [keys.jobState(job)])];
      for (const queryKey of names) void client.invalidateQueries({ queryKey });
    },
  });
}
