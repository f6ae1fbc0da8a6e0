/** A mutation that invalidates queries afterwards. A double click sends one request. */
import { type MutationKey, type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useOnce } from '../kit/once.ts';

interface Options<O, I> {
  readonly outdates: QueryKey;
  readonly change: (input: I) => Promise<O>;
  readonly onDone?: (answer: O) => void;
  /** Key under which others can see that the change is pending; their queries under it are cancelled meanwhile. */
  readonly key?: MutationKey;
}

export function useChange<O, I = void>({ outdates, change, onDone, key }: Options<O, I>) {
  const client = useQueryClient();
  const once = useOnce(change);
  return useMutation({
    ...(key === undefined ? {} : { mutationKey: key }),
    onMutate: () => (key === undefined ? undefined : client.cancelQueries({ queryKey: key })),
    mutationFn: once,
    onError: () => (key === undefined ? undefined : client.invalidateQueries({ queryKey: key })),
    onSuccess: (answer) => {
      onDone?.(answer);
      return client.invalidateQueries({ queryKey: outdates });
    },
  });
}
