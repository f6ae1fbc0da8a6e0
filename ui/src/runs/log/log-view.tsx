/**
 * A run's output, live, however long. It follows the end until the user scrolls up. The address holds a line (`#L120`), the
 * search text (`?find=`) and whether lines wrap (`?wrap=`).
 */
import { useEffect, useState, useSyncExternalStore } from 'react';
import { sentenceOf } from '../../kit/failure.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { LogBar } from './log-bar.tsx';
import type { LogSnapshot, LogState } from './log-follower.ts';
import { LogRows } from './log-rows.tsx';
import './log.css';
import type { LogStore } from './log-store.ts';
import { type LogFind, useLogFind } from './use-log-find.ts';
import { type LogPlace, useLogPlace } from './use-log-place.ts';
import { useLog } from './use-log.ts';

const words: Readonly<Record<Exclude<LogState, 'refused'>, string>> = {
  opening: 'Opening…',
  following: 'Live',
  complete: 'Complete',
  lost: 'Connection lost, trying again…',
};

interface Props {
  readonly run: string;
  readonly hasEnded: boolean;
}

export function LogView({ run, hasEnded }: Props) {
  const snapshot = useLog(run);
  const { store, state } = snapshot;
  const [wrap, setWrap] = useUrlState('wrap');
  const wraps = wrap === 'on';
  const at = useLogPlace(store, wraps);
  const find = useLogFind(snapshot);
  const linkedLine = useLinkedLine();
  useGoneToLink(linkedLine, snapshot, at);
  const step = (direction: 1 | -1): void => {
    const hit = find.step(direction, topRowOf(store, at));
    if (hit !== undefined) at.goTo(hit.row);
  };
  useFirstHit(find, topRowOf(store, at), () => step(1), linkedLine !== undefined);

  const tools = { follows: at.follows, setFollows: at.setFollows, wraps };
  return (
    <section className="log" aria-label="Log">
      <LogBar
        run={run}
        store={store}
        find={find}
        step={step}
        goToLine={(line) => {
          location.replace(`#L${line}`);
          at.goTo(store.rowOfLine(line));
        }}
        setWraps={(on) => setWrap(on ? 'on' : '')}
        {...tools}
      />
      {store.rows === 0 && state !== 'refused' ? (
        <p className="log-silence">
          {state === 'complete' ? 'This run wrote nothing.' : 'Nothing has been written yet.'}
        </p>
      ) : null}
      <div hidden={store.rows === 0}>
        <LogRows
          store={store}
          at={at}
          find={find}
          wraps={wraps}
          linkedLine={linkedLine}
          isLive={state !== 'complete' && state !== 'refused'}
        />
      </div>
      <Foot snapshot={snapshot} hasEnded={hasEnded} />
    </section>
  );
}

function wordsOf({ state, refusal }: LogSnapshot, hasEnded: boolean): string {
  if (state === 'refused') return refusal === undefined ? '' : sentenceOf(refusal);
  return hasEnded && state === 'following' ? 'Reading…' : words[state];
}

function Foot({ snapshot, hasEnded }: { readonly snapshot: LogSnapshot; readonly hasEnded: boolean }) {
  const { store } = snapshot;
  return (
    <p className="log-foot">
      <span role="status">{wordsOf(snapshot, hasEnded)}</span>
      {store.rows === 0 ? null : (
        <span>
          {store.lines.toLocaleString('en')} {store.lines === 1 ? 'line' : 'lines'}, {sizeOf(store.bytes)}
        </span>
      )}
      {store.isCut ? (
        <span>Only the last {sizeOf(store.keptBytes)} are shown; Download has all that was kept.</span>
      ) : null}
    </p>
  );
}

function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function topRowOf(store: LogStore, { frame, place }: LogPlace): number {
  return store.firstRow + Math.floor(place.top / frame.rowPx);
}

function onHash(listener: () => void): () => void {
  addEventListener('hashchange', listener);
  return () => removeEventListener('hashchange', listener);
}

function useLinkedLine(): number | undefined {
  const hash = useSyncExternalStore(onHash, () => location.hash);
  const line = /^#L(\d{1,12})$/.exec(hash)?.[1];
  return line === undefined ? undefined : Number(line);
}

/** Goes to the line once it is there, or to the last one if there never is such a line. */
function useGoneToLink(line: number | undefined, { store, state }: LogSnapshot, at: LogPlace): void {
  const [goneTo, setGoneTo] = useState<number>();
  const isThere = line !== undefined && store.rows > 0 && (line < store.lines || state === 'complete');
  useEffect(() => {
    if (!isThere || line === goneTo) return;
    setGoneTo(line);
    at.goTo(store.rowOfLine(line));
  });
}

/** Goes to the next match below, as soon as it is known. */
function useFirstHit(find: LogFind, fromRow: number, goThere: () => void, isElsewhere: boolean): void {
  const isKnown = find.lastRow !== undefined && (!find.isBusy || find.lastRow >= fromRow);
  useEffect(() => {
    if (!isElsewhere && isKnown && find.current === undefined) goThere();
  });
}
