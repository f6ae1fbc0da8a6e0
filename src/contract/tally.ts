/** Counters of a tenant's scheduler since its host started. The host writes them with its heartbeat, gateways show them. */

/** Upper bounds of the buckets, in seconds. A last bucket holds everything later. */
export const latenessBounds = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 60] as const;

export interface SchedulerTally {
  /** Instants fired when they were due, and missed instants caught up. */
  readonly fired: number;
  readonly caught_up: number;
  /** Runs created by both. */
  readonly runs: number;
  readonly retries: number;
  readonly leases_lost: number;
  /** Events that SQL has published. Missing in a host of an older build; so is the next one. */
  readonly published?: number;
  /** Events of the bus that were dropped before a subscriber had received them. */
  readonly dropped?: number;
  /** From the due time to the commit, for instants fired when they were due. */
  readonly lateness: { readonly buckets: readonly number[]; readonly seconds: number };
}
