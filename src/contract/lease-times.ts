/**
 * The times that hang together with a lease's length, in one place, because each is safe only beside the others: a
 * worker misses several heartbeats before its lease runs out, and a gateway that is gone is known to be before any
 * lease could have run out for want of it (I4).
 */
interface LeaseTimes {
  /** How often a worker says what it holds. */
  readonly beatMs: number;
  /** How long runs that were claimed for a poll which has ended meanwhile are kept for the worker's next one. */
  readonly leftMs: number;
  /** No poll waits longer: a worker that stands still must not be handed what was just taken back from it. */
  readonly pollMs: number;
  /** A run claimed this long before a heartbeat that does not name it is lost. */
  readonly unlistedMs: number;
  /** How often a gateway says that it serves, and after how long a silence it does not. */
  readonly gatewayBeatMs: number;
  readonly gatewayLifeMs: number;
  /** After how long a silence nobody counts on a worker for what is queued. */
  readonly workerLifeMs: number;
}

export function leaseTimes(leaseMs: number): LeaseTimes {
  // a longer lease forgives longer silences; it does not make anyone say less
  const ms = Math.min(leaseMs, 30_000);
  return {
    beatMs: Math.floor(ms / 6),
    leftMs: Math.floor(ms / 6),
    pollMs: Math.floor(ms / 3),
    unlistedMs: Math.floor(ms / 3),
    gatewayBeatMs: Math.floor(ms / 15),
    gatewayLifeMs: Math.floor(ms / 3),
    workerLifeMs: ms,
  };
}
