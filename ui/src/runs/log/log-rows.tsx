/** The visible part of a log: draws the rows in sight and a few more, however long the log is. */
import { useLayoutEffect, useRef } from 'react';
import type { LogFind } from './use-log-find.ts';
import type { LogPlace } from './use-log-place.ts';
import { LogRow } from './log-row.tsx';
import type { LogStore } from './log-store.ts';
import { evenRows, fewRows, stretchPx, wrappedRows } from './log-window.ts';

interface Props {
  readonly store: LogStore;
  readonly at: LogPlace;
  readonly find: LogFind;
  readonly wraps: boolean;
  readonly linkedLine: number | undefined;
  readonly isLive: boolean;
}

export function LogRows({ store, at, find, wraps, linkedLine, isLive }: Props) {
  const digits = String(store.lines).length;
  return (
    // a region that scrolls must be reachable by keyboard
    <div
      ref={at.box}
      className="log-box"
      role="log"
      // while one looks elsewhere in it, rows that come into sight are no news
      aria-live={isLive && at.follows ? 'polite' : 'off'}
      aria-label="Output"
      tabIndex={0}
      data-wraps={wraps ? '' : undefined}
      onScroll={at.onScroll}
    >
      <span ref={at.probe} className="log-probe" aria-hidden="true">
        0000000000
      </span>
      <div
        className="log-stretch"
        style={{ height: stretchPx(at.frame), ['--log-digits' as string]: `${Math.max(3, digits)}ch` }}
      >
        <Rows key={String(wraps)} store={store} at={at} find={find} wraps={wraps} linkedLine={linkedLine} />
      </div>
    </div>
  );
}

function Rows({ store, at, find, wraps, linkedLine }: Omit<Props, 'isLive'>) {
  const layer = useRef<HTMLDivElement>(null);
  const anchored = wraps ? wrappedRows(at.frame, at.place, at.linePx) : undefined;
  const even = anchored === undefined ? evenRows(at.frame, at.place) : undefined;
  const { from, to } = anchored ?? even ?? { from: 0, to: 0 };

  useLayoutEffect(() => {
    if (layer.current === null || anchored === undefined) return;
    if (at.frame.rows <= fewRows) at.setDrawnPx(layer.current.offsetHeight);
    const row = layer.current.children[anchored.anchor - from];
    if (!(row instanceof HTMLElement)) return;
    const within = row.offsetTop + row.offsetHeight * anchored.partOfRow;
    const wanted = at.place.scrollTop + at.frame.windowPx * anchored.partOfWindow - within;
    layer.current.style.top = `${anchored.partOfWindow === 0 ? 0 : wanted}px`;
  });

  return (
    <div ref={layer} className="log-layer" style={even === undefined ? undefined : { top: even.atPx }}>
      {store.read(store.firstRow + from, store.firstRow + to).map((row) => (
        <LogRow
          key={row.row}
          line={row.line}
          goesOn={row.goesOn}
          text={row.text}
          style={row.style}
          pattern={find.pattern}
          currentHit={find.hit?.row === row.row ? find.hit.nth : undefined}
          isLinked={row.line === linkedLine}
        />
      ))}
    </div>
  );
}
