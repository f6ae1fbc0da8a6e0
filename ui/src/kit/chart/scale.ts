/** Round numbers for an axis: 1, 2 or 5 times a power of ten. */

export interface Scale {
  /** The top of the axis, at least as high as the data. */
  readonly top: number;
  readonly ticks: readonly number[];
}

export function niceScale(most: number, wanted = 3): Scale {
  if (!(most > 0)) return { top: 1, ticks: [0, 1] };
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power;
  const count = Math.ceil(most / step - 1e-9);
  return { top: count * step, ticks: Array.from({ length: count + 1 }, (_, i) => i * step) };
}
