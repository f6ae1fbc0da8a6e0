/** The scroll position and the size of a box, as they change; `read` reads them at once, after a scroll by program. */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react';

export interface Scrolled {
  readonly top: number;
  readonly left: number;
  readonly width: number;
  readonly height: number;
}

export function useScroll(box: RefObject<HTMLElement | null>): Scrolled & { readonly read: () => void } {
  const [scrolled, setScrolled] = useState<Scrolled>({ top: 0, left: 0, width: 0, height: 0 });
  const read = useCallback((): void => {
    const { current } = box;
    if (current === null) return;
    const { scrollTop: top, scrollLeft: left, clientWidth: width, clientHeight: height } = current;
    setScrolled((old) =>
      old.top === top && old.left === left && old.width === width && old.height === height
        ? old
        : { top, left, width, height },
    );
  }, [box]);
  useLayoutEffect(read, [read]);
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const watcher = new ResizeObserver(read);
    watcher.observe(current);
    current.addEventListener('scroll', read, { passive: true });
    return () => {
      watcher.disconnect();
      current.removeEventListener('scroll', read);
    };
  }, [box, read]);
  return { ...scrolled, read };
}
