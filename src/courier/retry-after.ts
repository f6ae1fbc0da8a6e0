/** The header `Retry-After`: seconds, or a date. */

/** Milliseconds from now, never negative; null: missing or not understood. */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  const text = value?.trim() ?? '';
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text)) return Number(text) * 1_000;
  // Date.parse would also take numbers and other forms of dates
  if (!/^[A-Za-z]{3,9},? /.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
