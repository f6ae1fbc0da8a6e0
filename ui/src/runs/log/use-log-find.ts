/** Search in a log. The address holds the search text (`?find=`), and the search continues as the log grows. */
import { useEffect, useMemo, useReducer, useState } from 'react';
import { useUrlState } from '../../kit/url-state.ts';
import type { LogSnapshot } from './log-follower.ts';
import { hitFrom, LogSearch } from './log-search.ts';

const sliceMs = 10;
const tellEveryMs = 150;

interface Hit {
  readonly row: number;
  /** Which one of the row, from 0. */
  readonly nth: number;
}

export interface LogFind {
  readonly question: string;
  readonly ask: (question: string) => void;
  readonly pattern: RegExp | undefined;
  readonly count: number;
  /** The index of the last hit so far. */
  readonly lastRow: number | undefined;
  readonly isFull: boolean;
  readonly isBusy: boolean;
  /** From 0. */
  readonly current: number | undefined;
  readonly hit: Hit | undefined;
  /** Goes to the next or previous match, from the current match or else from a row. */
  readonly step: (direction: 1 | -1, fromRow: number) => Hit | undefined;
}

export function useLogFind(snapshot: LogSnapshot): LogFind {
  const { store } = snapshot;
  const [question, ask] = useUrlState('find');
  const isText = question.trim() !== '' && !question.startsWith(':');
  const search = useMemo(() => (isText ? new LogSearch(store, question) : undefined), [store, question, isText]);
  const isBusy = useSearching(search, snapshot);
  const [gone, go] = useState<{ search: LogSearch; index: number }>();
  const current = gone !== undefined && gone.search === search ? gone.index : undefined;
  const hits = search?.hits ?? [];
  const step = (direction: 1 | -1, fromRow: number): Hit | undefined => {
    if (search === undefined || hits.length === 0) return undefined;
    const near = current === undefined ? hitFrom(hits, fromRow, direction) : current + direction;
    const index = (near + hits.length) % hits.length;
    go({ search, index });
    return hitAt(hits, index);
  };
  return {
    question,
    ask,
    pattern: search?.pattern,
    count: hits.length,
    lastRow: hits.at(-1),
    isFull: search?.isFull ?? false,
    isBusy,
    current,
    hit: hitAt(hits, current),
    step,
  };
}

function hitAt(hits: readonly number[], index: number | undefined): Hit | undefined {
  const row = index === undefined ? undefined : hits[index];
  return row === undefined || index === undefined ? undefined : { row, nth: index - hits.indexOf(row) };
}

/** Looks through what there is in slices that the page does not feel; whether it is still at it. */
function useSearching(search: LogSearch | undefined, { store, state }: LogSnapshot): boolean {
  const [, tell] = useReducer((count: number) => count + 1, 0);
  const [done, setDone] = useState<LogSearch>();
  // a last row that may still grow is looked at when it has ended
  const end = state === 'complete' ? store.rows : store.rows - 1;
  useEffect(() => {
    if (search === undefined) return undefined;
    let toldAt = performance.now();
    let timer = setTimeout(slice);
    function slice(): void {
      if (search === undefined) return;
      const isMore = search.look(end, sliceMs);
      if (isMore) timer = setTimeout(slice);
      else setDone(search);
      if (isMore && performance.now() - toldAt < tellEveryMs) return;
      toldAt = performance.now();
      tell();
    }
    return () => clearTimeout(timer);
  }, [search, end]);
  return search !== undefined && done !== search;
}
