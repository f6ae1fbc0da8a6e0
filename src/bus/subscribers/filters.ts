/** Filters of subscribers. */
export function filterFaults(_value: unknown): { path: (string | number)[]; message: string }[] {
  return [];
}
