/** Cuts the pieces of a line where something that was looked for begins and ends. */
import type { Piece } from './ansi.ts';

export interface MarkedPiece extends Piece {
  /** Which of the line's hits it belongs to, from 0; left out where it belongs to none. */
  readonly hit?: number;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

export function marked(pieces: readonly Piece[], pattern: RegExp | undefined): readonly MarkedPiece[] {
  if (pattern === undefined) return pieces;
  const text = pieces.map((piece) => piece.text).join('');
  const ranges = Array.from(text.matchAll(pattern), ({ index, 0: found }) => ({
    from: index,
    to: index + found.length,
  }));
  if (ranges.length === 0) return pieces;
  let begin = 0;
  return pieces.flatMap((piece) => {
    const parts = cut(piece, begin, ranges);
    begin += piece.text.length;
    return parts;
  });
}

/** `begin` is where the piece stands in its line. */
function cut(piece: Piece, begin: number, ranges: readonly Range[]): readonly MarkedPiece[] {
  const parts: MarkedPiece[] = [];
  const end = begin + piece.text.length;
  const slice = (from: number, to: number): string => piece.text.slice(from - begin, to - begin);
  let at = begin;
  for (const [hit, { from, to }] of ranges.entries()) {
    if (to <= at || from >= end) continue;
    if (from > at) parts.push({ text: slice(at, from), style: piece.style });
    const until = Math.min(to, end);
    parts.push({ text: slice(Math.max(from, at), until), style: piece.style, hit });
    at = until;
  }
  if (at < end) parts.push({ text: slice(at, end), style: piece.style });
  return parts;
}
