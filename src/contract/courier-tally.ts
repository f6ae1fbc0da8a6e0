/** Counters of a courier since it started, and the last standing of each tenant. The courier writes them, gateways show them. */
import type { BusStanding } from './bus.ts';

/** Upper bounds of the buckets, in seconds. A last bucket holds everything later. */
export const deliveryBounds = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 20] as const;
export const latencyBounds = [0.005, 0.02, 0.05, 0.1, 0.5, 1, 5, 60, 600, 3600] as const;

/** The subscribers of one courier that metrics show, over all tenants. */
export const maxShownSubscribers = 1_000;

export interface HistogramTally {
  readonly buckets: readonly number[];
  readonly seconds: number;
}

/** What a courier did for one tenant. */
export interface BusTally {
  readonly delivered: number;
  /** Batches by the class of the answer (`2xx`), or by the code of the failure. */
  readonly deliveries: Readonly<Record<string, number>>;
  readonly delivery: HistogramTally;
  /** From the acceptance of an event to the 2xx for it. */
  readonly latency: HistogramTally;
  readonly dead_letters: number;
  readonly scrubbed: number;
}

export interface CourierTally {
  readonly tenants: Readonly<Record<string, BusTally>>;
  /** `at`: milliseconds since 1970. */
  readonly standings: Readonly<Record<string, BusStanding & { readonly at: number }>>;
}
