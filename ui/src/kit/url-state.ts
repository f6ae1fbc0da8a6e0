/** A filter that lives in the address, so that every view can be linked to. Its default is not written out. */
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

export function useUrlState(name: string, standard = ''): [string, (value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const set = useCallback(
    (value: string) => {
      const change = (old: URLSearchParams): URLSearchParams => {
        const next = new URLSearchParams(old);
        if (value === standard) next.delete(name);
        else next.set(name, value);
        return next;
      };
      setSearch(change, { replace: true });
    },
    [name, standard, setSearch],
  );
  return [search.get(name) ?? standard, set];
}

/** How many rows of a list are on show: grows by doubling, kept in the address. */
export function useShown(first: number, most: number): [number, () => void] {
  const [text, set] = useUrlState('n', String(first));
  const asked = Number(text);
  const shown = Number.isInteger(asked) && asked > 0 ? Math.min(asked, most) : first;
  return [shown, () => set(String(Math.min(shown * 2, most)))];
}

/** The parameters of an address with some of them changed; an empty value removes one. */
export function withChanges(search: URLSearchParams, values: Readonly<Record<string, string>>): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [name, value] of Object.entries(values)) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
  return next;
}
