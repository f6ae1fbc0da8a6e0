/** Numbers of JSON that a JavaScript number cannot hold: they would be stored as something else, in silence. */

/** What is wrong with a parsed number, or nothing. */
export function numberFault(value: number): string | undefined {
  if (!Number.isFinite(value)) return 'must be a finite number, below 1.8e308';
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return undefined;
  return `must not be beyond ${Number.MAX_SAFE_INTEGER}, where numbers are no longer exact; write it as text`;
}
