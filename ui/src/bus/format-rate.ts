/** `0.5`, `12`, `3,400`, `25k`: a number per minute, as short as an axis needs it. */
export function formatRate(value: number): string {
  if (value >= 10_000) return `${Math.round(value / 1_000)}k`;
  return value >= 10 || Number.isInteger(value) ? Math.round(value).toLocaleString('en') : value.toFixed(1);
}
