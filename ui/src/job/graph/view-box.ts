/** The visible part of a drawing: its position and scale, and how dragging, zooming and fitting change them. */
export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Box extends Size {
  readonly x: number;
  readonly y: number;
}

const leastScale = 0.04;
const mostScale = 2.5;
const margin = 16;

/** The whole drawing, centred, never larger than it was drawn. */
export function fit(drawing: Size, frame: Size): View {
  const room = { width: frame.width - 2 * margin, height: frame.height - 2 * margin };
  const wanted = Math.min(room.width / Math.max(1, drawing.width), room.height / Math.max(1, drawing.height), 1);
  const scale = Math.max(leastScale, wanted);
  return {
    scale,
    x: (frame.width - drawing.width * scale) / 2,
    y: (frame.height - drawing.height * scale) / 2,
  };
}

const phone = 600;
const readable = 0.6;

/** The initial view: fitted; on a phone, where a fitted drawing could not be read, its beginning. */
export function opening(drawing: Size, frame: Size): View {
  const fitted = fit(drawing, frame);
  if (frame.width >= phone || fitted.scale >= readable) return fitted;
  const y = Math.max(margin, (frame.height - drawing.height * readable) / 2);
  return { scale: readable, x: margin, y };
}

/** The point of the drawing under a point of the frame stays under it. */
export function zoom(view: View, factor: number, at: { readonly x: number; readonly y: number }): View {
  const scale = Math.min(mostScale, Math.max(leastScale, view.scale * factor));
  const ratio = scale / view.scale;
  return { scale, x: at.x - (at.x - view.x) * ratio, y: at.y - (at.y - view.y) * ratio };
}

/** Moves no further than needed for a box of the drawing to be visible. */
export function reveal(view: View, box: Box, frame: Size): View {
  const shift = (start: number, length: number, room: number): number => {
    if (start < margin) return margin - start;
    return start + length > room - margin ? Math.max(margin - start, room - margin - start - length) : 0;
  };
  const dx = shift(view.x + box.x * view.scale, box.width * view.scale, frame.width);
  const dy = shift(view.y + box.y * view.scale, box.height * view.scale, frame.height);
  return dx === 0 && dy === 0 ? view : { ...view, x: view.x + dx, y: view.y + dy };
}
