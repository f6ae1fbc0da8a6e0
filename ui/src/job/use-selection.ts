/** The selected instant and task of a job. The address holds both (`?instant=&task=`). */
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

interface Selection {
  readonly instant: string | undefined;
  readonly task: string | undefined;
}

/** Both are written at once, because the second of two successive writes would undo the first. */
export function useSelection(): Selection & { readonly select: (change: Partial<Selection>) => void } {
  const [search, setSearch] = useSearchParams();
  const select = useCallback(
    (change: Partial<Selection>) =>
      setSearch(
        (old) => {
          const next = new URLSearchParams(old);
          for (const [name, value] of Object.entries(change)) {
            if (value === undefined) next.delete(name);
            else next.set(name, value);
          }
          return next;
        },
        { replace: true },
      ),
    [setSearch],
  );
  return { instant: search.get('instant') ?? undefined, task: search.get('task') ?? undefined, select };
}

/** The address of an instant in a view. */
export function instantHref(job: string, view: '' | 'grid' | 'timeline', instant: string): string {
  return `/jobs/${job}${view === '' ? '' : `/${view}`}?instant=${encodeURIComponent(instant)}`;
}
