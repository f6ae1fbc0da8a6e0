/**
 * All times that depend on the length of a lease, in one place, because each is safe only together with the others (I4):
 *
 * 1. A worker must miss several heartbeats before its lease expires.
 * 2. A dead gateway is noticed before any lease could expire because its heartbeats could not be received.
 */
interface LeaseTimes {
  /** The interval of a worker's heartbeats, which name the runs that it holds. */
  readonly beatMs: number;
  /** How long runs are kept for a worker's next poll, if the poll that they were claimed for has ended. */
  readonly leftMs: number;
  /** The longest wait of a poll. It is short, so that a stalled worker does not receive runs that were just taken back from it. */
  readonly pollMs: number;
  /** A run is lost if a heartbeat this long after its claim does not name it. */
  readonly unlistedMs: number;
  /** The interval of a gateway's heartbeats, and the silence after which it counts as gone. */
  readonly gatewayBeatMs: number;
  readonly gatewayLifeMs: number;
  /** The silence after which a worker no longer counts as available for queued runs. */
  readonly workerLifeMs: number;
}

export function leaseTimes(leaseMs: number): LeaseTimes {
  // a lease beyond 30 s tolerates longer silences; heartbeats stay as frequent
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
