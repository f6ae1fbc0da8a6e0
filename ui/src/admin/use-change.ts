/** A mutation that invalidates queries afterwards. A double click sends one request. */
import { type MutationKey, type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useOnce } from '../kit/once.ts';

interface Options<O> {
  readonly outdates: QueryKey;
  readonly change: () => Promise<O>;
  readonly onDone?: () => void;
  /** Key under which others can see that the change is pending; their queries under it are cancelled meanwhile. */
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
