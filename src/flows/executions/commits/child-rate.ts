/**
 * Limits how many executions a tenant's executions launch: a flow that launches itself must not take all of a database. Children beyond
 * the limit wait in their inbox.
 */
import type { Pool } from 'pg';

/** Launches from flows per second and conductor. */
const childrenPerSecond = 1_000;
/** Launches that may come at once. */
const maxBurst = 1_000;

/** Times of `runningMs`: the clock may be set, and children must not wait for a time that it has left again. */
const nextMs = new WeakMap<Pool, number>();

interface ChildClock {
  readonly nowMs: number;
  /** A clock that only runs forward. */
  readonly runningMs: number;
}

/** When the launches of so many more children may be taken. */
export function childTimes(pool: Pool, { nowMs, runningMs }: ChildClock, count: number): number[] {
  const stepMs = 1_000 / childrenPerSecond;
  let next = Math.max(nextMs.get(pool) ?? 0, runningMs - maxBurst * stepMs);
  const times = Array.from({ length: count }, () => {
    next += stepMs;
    return nowMs + Math.max(0, next - runningMs);
  });
  nextMs.set(pool, next);
  return times;
}
