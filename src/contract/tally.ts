/** What a tenant's scheduler has done since its host started: written by the host with its heartbeat, shown by gateways. */

/** In seconds. The last bucket of a tally holds what is later than all of these. */
export const latenessBounds = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 60] as const;

export interface SchedulerTally {
  /** Instants fired when they were due, and missed ones caught up. */
  readonly fired: number;
  readonly caught_up: number;
  /** Runs that both of them made. */
  readonly runs: number;
  readonly retries: number;
  readonly leases_lost: number;
  /** From the due time to the commit, of those fired when they were due. */
  readonly lateness: { readonly buckets: readonly number[]; readonly seconds: number };
}
