/** What a step waits for, without the time that is shown beside it: `its time, at 2026-01-31 00:00Z` becomes `its time`. */
export function withoutTime({ message, until }: { readonly message: string; readonly until: string | null }): string {
  return until === null ? message : message.replace(/, (?:at|until|at the latest) [^,]*$/, '');
}
