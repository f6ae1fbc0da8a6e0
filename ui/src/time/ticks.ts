/** Round steps for an axis of time spans. */
const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

const round = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * second),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12, 24, 48, 96, 240, 480].map((n) => n * hour),
];

/** The smallest round step, in milliseconds, that divides a span into no more than `most` parts. */
export function stepFor(spanMs: number, most: number): number {
  return round.find((step) => spanMs / step <= most) ?? Math.ceil(spanMs / most / (480 * hour)) * 480 * hour;
}

/** From zero up to the first that is not below the span. */
export function ticksFor(spanMs: number, most: number): number[] {
  const step = stepFor(spanMs, most);
  return Array.from({ length: Math.ceil(spanMs / step) + 1 }, (_, n) => n * step);
}
