/**
 * A drawing on a terminal that is replaced by the next one.
 *
 * Lines that are wider than the terminal are cut by it, because a line that wraps could not be overwritten. A drawing that is higher
 * than the terminal loses its last lines.
 */
import type { Sink } from '../session/io.ts';

const usualRows = 24;

export interface LiveDrawing {
  /** Lines that fit. */
  readonly maxLines: () => number;
  draw(lines: readonly string[]): void;
}

export function makeLiveDrawing(sink: Sink): LiveDrawing {
  let drawn = 0;
  // the cursor stands below the drawing
  const maxLines = (): number => Math.max(1, (sink.rows ?? usualRows) - 1);
  return {
    maxLines,
    draw(lines) {
      const kept = lines.slice(0, maxLines());
      const back = drawn === 0 ? '' : `\u001b[${drawn}A`;
      sink.write(`${back}\r\u001b[J\u001b[?7l${kept.map((line) => `${line}\n`).join('')}\u001b[?7h`);
      drawn = kept.length;
    },
  };
}
