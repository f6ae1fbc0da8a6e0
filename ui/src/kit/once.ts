/** Sends one request for a double click: a call during the first one gets the same answer. */
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
