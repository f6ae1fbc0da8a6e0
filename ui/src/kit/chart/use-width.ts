/** How wide an element is, for drawings that fill it. Zero until it is known. */
import { type RefObject, useLayoutEffect, useRef, useState } from 'react';

export function useWidth<T extends Element>(): readonly [RefObject<T | null>, number] {
  const box = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}
