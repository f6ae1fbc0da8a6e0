/** JSON numbers that a JavaScript number cannot represent. They would silently be stored as another number. */

/** The fault of a parsed number; undefined: it is exact. */
export function numberFault(value: number): string | undefined {
  if (!Number.isFinite(value)) return 'must be a finite number, below 1.8e308';
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return undefined;
  return `must not be beyond ${Number.MAX_SAFE_INTEGER}, where numbers are no longer exact; write it as text`;
}
