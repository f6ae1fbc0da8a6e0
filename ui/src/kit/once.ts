/** A double click asks once: whoever asks again while the first is under way is given its answer. */
import { useRef } from 'react';

export function useOnce<I, O>(act: (input: I) => Promise<O>): (input: I) => Promise<O> {
  const underWay = useRef<Promise<O>>(undefined);
  return (input) => {
    underWay.current ??= act(input).finally(() => {
      underWay.current = undefined;
    });
    return underWay.current;
  };
}
