/** One thing that is changed here. What it outdates is read again, and a double click asks once. */
import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useOnce } from '../kit/once.ts';

interface Options<O> {
  readonly outdates: QueryKey;
  readonly change: () => Promise<O>;
  readonly onDone?: () => void;
}

export function useChange<O>({ outdates, change, onDone }: Options<O>) {
  const client = useQueryClient();
  const once = useOnce(change);
  return useMutation({
    mutationFn: () => once(undefined),
    onSuccess: () => {
      onDone?.();
      return client.invalidateQueries({ queryKey: outdates });
    },
  });
}
