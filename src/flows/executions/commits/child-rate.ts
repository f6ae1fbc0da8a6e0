/**
 * Limits how many executions a tenant's executions launch: a flow that launches itself must not take all of a database. Children beyond
 * the limit wait in their inbox.
 */
import type { Pool } from 'pg';

/** Launches from flows per second and conductor. */
const childrenPerSecond = 1_000;
/** Launches that may come at once. */
const maxBurst = 1_000;

const nextMs = new WeakMap<Pool, number>();

/** When the launches of so many more children may be taken. */
export function childTimes(pool: Pool, nowMs: number, count: number): number[] {
  const stepMs = 1_000 / childrenPerSecond;
  let next = Math.max(nextMs.get(pool) ?? 0, nowMs - maxBurst * stepMs);
  const times = Array.from({ length: count }, () => {
    next += stepMs;
    return Math.max(nowMs, next);
  });
  nextMs.set(pool, next);
  return times;
}
