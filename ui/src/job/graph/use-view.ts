/**
 * Dragging, wheel, pinch and buttons move a drawing within its frame. Every move writes one attribute and renders nothing
 * again, so it is as quick with 500 boxes as with five. Until the user moves it, it stays fitted to the frame.
 */
import { type PointerEvent, type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'react';
import { type Box, fit, opening, reveal, type Size, type View, zoom } from './view-box.ts';

/** A press that moves further than this is a drag, not a click. */
const dragBeyondPx = 4;
/** Below this scale names cannot be read, and are not drawn. */
const farBelow = 0.42;

export interface ViewControl {
  readonly fit: () => void;
  readonly zoomBy: (factor: number) => void;
  readonly reveal: (box: Box) => void;
  readonly drag: DragHandlers;
}

interface DragHandlers {
  readonly onPointerDown: (event: PointerEvent) => void;
  readonly onPointerMove: (event: PointerEvent) => void;
  readonly onPointerUp: (event: PointerEvent) => void;
  readonly onPointerCancel: (event: PointerEvent) => void;
  readonly onClickCapture: (event: { stopPropagation(): void; preventDefault(): void }) => void;
}

/** A `kept` box stays visible at the same scale when the frame changes its size. */
export function useView(
  frame: RefObject<SVGSVGElement | null>,
  drawn: RefObject<SVGGElement | null>,
  { width, height }: Size,
  kept: Box | undefined,
): ViewControl {
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });
  const moved = useRef(false);
  const show = useCallback(
    (next: View) => {
      view.current = next;
      drawn.current?.setAttribute('transform', `translate(${next.x} ${next.y}) scale(${next.scale})`);
      frame.current?.toggleAttribute('data-far', next.scale < farBelow);
    },
    [frame, drawn],
  );
  const control = useMemo(() => {
    const room = (): Size => ({ width: frame.current?.clientWidth ?? 1, height: frame.current?.clientHeight ?? 1 });
    const change = (next: View): void => {
      moved.current = true;
      show(next);
    };
    return {
      open: () => show(opening({ width, height }, room())),
      fit: () => change(fit({ width, height }, room())),
      zoomBy: (factor: number) => {
        const { width: w, height: h } = room();
        change(zoom(view.current, factor, { x: w / 2, y: h / 2 }));
      },
      reveal: (box: Box) => {
        const next = reveal(view.current, box, room());
        if (next !== view.current) change(next);
      },
      change,
      room,
    };
  }, [frame, show, width, height]);

  useLayoutEffect(() => {
    if (!moved.current) control.open();
  }, [control]);
  useEffect(() => {
    const { current } = frame;
    if (current === null) return undefined;
    const watcher = new ResizeObserver(() => {
      if (kept !== undefined) show(reveal(view.current, kept, control.room()));
      else if (!moved.current) control.open();
    });
    watcher.observe(current);
    return () => watcher.disconnect();
  }, [frame, control, kept, show]);
  useWheel(frame, view, control.change);
  const drag = useDrag(frame, view, control.change);
  return useMemo(() => ({ ...control, drag }), [control, drag]);
}

type Change = (next: View) => void;

function useWheel(frame: RefObject<SVGSVGElement | null>, view: RefObject<View>, change: Change): void {
  useEffect(() => {
    const { current } = frame;
    if (current === null) return undefined;
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault();
      const { left, top } = current.getBoundingClientRect();
      const step = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const factor = Math.exp(-Math.max(-120, Math.min(120, event.deltaY * step)) * (event.ctrlKey ? 0.01 : 0.002));
      change(zoom(view.current, factor, { x: event.clientX - left, y: event.clientY - top }));
    };
    // React's own listener is passive and could not keep the page from scrolling
    current.addEventListener('wheel', onWheel, { passive: false });
    return () => current.removeEventListener('wheel', onWheel);
  }, [frame, view, change]);
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** One pointer drags, two pinch. */
function useDrag(frame: RefObject<SVGSVGElement | null>, view: RefObject<View>, change: Change): DragHandlers {
  return useMemo(() => {
    const pointers = new Map<number, Point>();
    let travelled = 0;
    const move = (event: PointerEvent, old: Point): void => {
      const now = { x: event.clientX, y: event.clientY };
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      const { left = 0, top = 0 } = frame.current?.getBoundingClientRect() ?? {};
      if (other === undefined) {
        change({ ...view.current, x: view.current.x + now.x - old.x, y: view.current.y + now.y - old.y });
      } else {
        const apart = (a: Point): number => Math.max(1, Math.hypot(a.x - other.x, a.y - other.y));
        const at = { x: (now.x + other.x) / 2 - left, y: (now.y + other.y) / 2 - top };
        change(zoom(view.current, apart(now) / apart(old), at));
      }
      pointers.set(event.pointerId, now);
    };
    const end = (event: PointerEvent): void => void pointers.delete(event.pointerId);
    return {
      onPointerDown: (event) => {
        if (event.button !== 0) return;
        if (pointers.size === 0) travelled = 0;
        pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      },
      onPointerMove: (event) => {
        const old = pointers.get(event.pointerId);
        if (old === undefined) return;
        travelled += Math.abs(event.clientX - old.x) + Math.abs(event.clientY - old.y);
        // captured only now, because a captured press would not click the box under it
        if (travelled > dragBeyondPx) frame.current?.setPointerCapture(event.pointerId);
        move(event, old);
      },
      onPointerUp: end,
      onPointerCancel: end,
      onClickCapture: (event) => {
        if (travelled <= dragBeyondPx) return;
        event.stopPropagation();
        event.preventDefault();
      },
    };
  }, [frame, view, change]);
}
