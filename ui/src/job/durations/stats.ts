/** Durations of tasks at the latest instants, by task and by instant, in seconds. */
export interface Duration {
  readonly trigger_datetime: string;
  readonly duration: number;
  readonly task_name: string;
}

export interface TaskStats {
  readonly name: string;
  readonly runs: number;
  readonly latest: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
  /** One value for each instant, oldest first; undefined if the task did not run. */
  readonly series: readonly (number | undefined)[];
}

export interface Durations {
  /** Oldest first. */
  readonly instants: readonly string[];
  /** All tasks together, for each instant. */
  readonly totals: readonly number[];
  /** Slowest first. */
  readonly tasks: readonly TaskStats[];
}

export function gather(rows: readonly Duration[]): Durations {
  const instants = [...new Set(rows.map((row) => row.trigger_datetime))].sort((a, b) => Date.parse(a) - Date.parse(b));
  const places = new Map(instants.map((instant, place) => [instant, place]));
  const totals = instants.map(() => 0);
  const byTask = new Map<string, (number | undefined)[]>();
  for (const { trigger_datetime, duration, task_name } of rows) {
    const place = places.get(trigger_datetime) ?? 0;
    totals[place] = (totals[place] ?? 0) + duration;
    const series = byTask.get(task_name) ?? instants.map(() => undefined);
    series[place] = duration;
    byTask.set(task_name, series);
  }
  const tasks = [...byTask].map(([name, series]) => statsOf(name, series));
  return { instants, totals, tasks: tasks.sort((a, b) => b.p50 - a.p50 || b.max - a.max) };
}

function statsOf(name: string, series: readonly (number | undefined)[]): TaskStats {
  const known = series.filter((value) => value !== undefined);
  const sorted = known.toSorted((a, b) => a - b);
  return {
    name,
    runs: known.length,
    latest: known.at(-1) ?? 0,
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    max: sorted.at(-1) ?? 0,
    series,
  };
}

/** The quantile: the smallest value that at least this share of the values does not exceed. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
}
