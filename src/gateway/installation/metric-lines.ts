/** Lines of the text format of Prometheus. */
import type { HistogramTally } from '../../contract/courier-tally.ts';

export function headOf(name: string, type: string, help: string): string[] {
  return [`# HELP millrace_${name} ${help}`, `# TYPE millrace_${name} ${type}`];
}

/** The value of a label. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** The buckets of a tally count one bucket each; those of Prometheus also count the smaller ones. */
export function histogram(
  name: string,
  labels: string,
  bounds: readonly number[],
  { buckets, seconds }: HistogramTally,
): string[] {
  let count = 0;
  const lines = [...bounds, '+Inf'].map((bound, i) => {
    count += buckets[i] ?? 0;
    return `millrace_${name}_bucket{${labels},le="${bound}"} ${count}`;
  });
  return [...lines, `millrace_${name}_sum{${labels}} ${seconds}`, `millrace_${name}_count{${labels}} ${count}`];
}
