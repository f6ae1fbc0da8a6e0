/**
 * Maps times to the timeline's axis, from 0 to 1. Long stretches in which nothing was queued or ran (a failure
 * at night that was run again in the morning) are folded, so that what happened stays wide enough to be seen.
 */
import { stepFor } from '../../time/ticks.ts';

export interface Busy {
  readonly from: number;
  readonly to: number;
}

interface Stretch extends Busy {
  readonly start: number;
  readonly end: number;
  readonly folded: boolean;
}

export interface Scale {
  readonly stretches: readonly Stretch[];
  readonly place: (at: number) => number;
  readonly ticks: readonly { readonly at: number; readonly sinceStart: number }[];
}

/** A pause is folded when it is longer than this part of all that was busy, and longer than a moment. */
const longPause = 0.6;
const momentMs = 2_000;
/** The width of a fold on the axis. */
const foldWidth = 0.05;

export function makeScale(busy: readonly Busy[]): Scale {
  const merged = merge(busy);
  const worked = merged.reduce((sum, { from, to }) => sum + to - from, 0);
  const pieces = joinShortPauses(merged, Math.max(momentMs, worked * longPause));
  const linear = Math.max(
    1,
    pieces.reduce((sum, { from, to }) => sum + to - from, 0),
  );
  const fold = linear * foldWidth;
  const whole = linear + fold * Math.max(0, pieces.length - 1);
  const stretches: Stretch[] = [];
  let at = 0;
  pieces.forEach(({ from, to }, i) => {
    const before = pieces[i - 1];
    if (before !== undefined) {
      stretches.push({ from: before.to, to: from, start: at / whole, end: (at + fold) / whole, folded: true });
      at += fold;
    }
    const length = Math.max(to - from, pieces.length === 1 ? 1 : 0);
    stretches.push({ from, to: from + length, start: at / whole, end: (at + length) / whole, folded: false });
    at += length;
  });
  return { stretches, place: (time) => place(stretches, time), ticks: ticksOf(stretches, linear) };
}

function merge(busy: readonly Busy[]): Busy[] {
  const merged: Busy[] = [];
  for (const { from, to } of busy.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to) merged[merged.length - 1] = { ...last, to: Math.max(last.to, to) };
    else merged.push({ from, to: Math.max(from, to) });
  }
  return merged;
}

function joinShortPauses(merged: readonly Busy[], longest: number): Busy[] {
  const pieces: Busy[] = [];
  for (const piece of merged) {
    const last = pieces.at(-1);
    if (last !== undefined && piece.from - last.to <= longest)
      pieces[pieces.length - 1] = { from: last.from, to: piece.to };
    else pieces.push(piece);
  }
  return pieces;
}

function place(stretches: readonly Stretch[], time: number): number {
  const within = stretches.find(({ to }) => time <= to) ?? stretches.at(-1);
  if (within === undefined) return 0;
  const part = within.to === within.from ? 0 : (time - within.from) / (within.to - within.from);
  return within.start + Math.max(0, Math.min(1, part)) * (within.end - within.start);
}

/** Round spans since the beginning; none within a fold. */
function ticksOf(stretches: readonly Stretch[], linear: number): Scale['ticks'] {
  const begin = stretches[0]?.from ?? 0;
  const step = stepFor(linear, 8);
  return stretches
    .filter(({ folded }) => !folded)
    .flatMap(({ from, to }) => {
      const first = Math.ceil((from - begin) / step);
      const count = Math.max(0, Math.floor((to - begin) / step) - first + 1);
      return Array.from({ length: count }, (_, n) => ({
        at: begin + (first + n) * step,
        sinceStart: (first + n) * step,
      }));
    });
}
