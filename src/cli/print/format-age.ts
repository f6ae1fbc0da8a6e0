/** How long ago a time was, in at most six characters, so that tables fit a terminal: `42s`, `31m`, `5h12m`, `12d`. */
const [minute, hour, day] = [60, 3_600, 86_400];

export function formatAge(at: string | null, nowMs: number): string | null {
  if (at === null) return null;
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(at)) / 1_000));
  if (seconds < minute) return `${seconds}s`;
  if (seconds < hour) return `${Math.floor(seconds / minute)}m`;
  const minutes = Math.floor((seconds % hour) / minute);
  if (seconds < day) return `${Math.floor(seconds / hour)}h${minutes === 0 ? '' : `${minutes}m`}`;
  return `${Math.floor(seconds / day)}d`;
}
