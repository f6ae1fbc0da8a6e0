/** One thing that is changed here. What it outdates is read again, and a double click asks once. */
import { type MutationKey, type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useOnce } from '../kit/once.ts';

interface Options<O> {
  readonly outdates: QueryKey;
  readonly change: () => Promise<O>;
  readonly onDone?: () => void;
  /** Under which others see that it is under way; what they have asked for then is not waited for. */
  readonly key?: MutationKey;
}

export function useChange<O>({ outdates, change, onDone, key }: Options<O>) {
  const client = useQueryClient();
  const once = useOnce(change);
  return useMutation({
    ...(key === undefined ? {} : { mutationKey: key }),
    onMutate: () => (key === undefined ? undefined : client.cancelQueries({ queryKey: key })),
    mutationFn: () => once(undefined),
    onError: () => (key === undefined ? undefined : client.invalidateQueries({ queryKey: key })),
    onSuccess: () => {
      onDone?.();
      return client.invalidateQueries({ queryKey: outdates });
    },
  });
}
