/** Limits of a worker: the times of its stop, how many runs it takes without an acknowledgement of their reports, and which take a place. */

/** The maximum time of each step after the drain. Without a deadline, all of them take 2.8 s at most. */
export const leave = { killMs: 1_800, logsMs: 200, reportsMs: 500, farewellMs: 300 } as const;
/**
 * The time until the deadline that each step leaves for the following ones. A killed task gets SIGKILL 1 s after SIGTERM, so
 * 1.2 s are enough for it.
 */
export const reserve = { drainMs: 1_800, killMs: 600, logsMs: 500, reportsMs: 200 } as const;

/** The number of runs without a place in one poll: the maximum of one claim. */
export const quickBatch = 1_000;
/**
 * Limits of unacknowledged reports. Beyond the limit of a tenant no more of its runs are taken, whether quick or placed; runs of
 * other tenants are. Beyond the limit of all tenants no runs are taken, because memory and the size of a heartbeat, which lists
 * them, are limited. The limit of quick runs leaves room for the others.
 */
export const maxUnsettled = {
  ofTenant: { quick: 2 * quickBatch, placed: 5_000 },
  ofAll: { quick: 12_000, placed: 14_000 },
} as const;

/** Work of the kind `none` executes nothing. */
export function needsPlace(kind: string): boolean {
  return kind !== 'none';
}
