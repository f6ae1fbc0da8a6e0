/**
 * SQL conditions that decide whether a host or the active launcher is alive, by the clock of the control database. Launcher,
 * hosts and gateways share them, so that all use the same times.
 */
import { sql } from '../kernel/sql.ts';

/** A launcher's lease is valid for this long after its renewal. */
export const leaseValidMs = 5_000;

/** On `launcher_lease`: a launcher is active. */
export const isHeld = sql`
  holder is not null and renewed_at > clock_timestamp() - ${leaseValidMs} * interval '1 millisecond'`;

/**
 * A host without a beat for this long is lost. It is not shorter because a host on an overloaded machine beats late, and
 * restarting its schedulers would add to the load.
 */
export const silentMs = 8_000;

/** On `host`: it is lost, and the active launcher writes it off. */
export const isSilent = sql`host.beat_at < clock_timestamp() - ${silentMs} * interval '1 millisecond'`;
