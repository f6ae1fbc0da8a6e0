/**
 * Errands: a queue of unique background work, with one driver on PostgreSQL and room for another on Redis.
 *
 * 1. An errand exists once, whatever its state. Pushing a known one changes nothing (I8).
 * 2. Its states: `scheduled` until its time comes, then `ready`, then `pending` at a worker, then gone. After too many losses
 *    in a row it is `poisoned`: set aside until somebody revives it.
 * 3. A write of a worker names the lease under which it holds the errand. It has no effect if the lease has passed on.
 * 4. A worker names what it holds in each beat. What it holds without naming it, and everything of a worker that is silent,
 *    comes back.
 * 5. Among ready errands, the one that has been ready for longest is taken first.
 */

export const errandQueues = ['main', 'aux'] as const;
export type ErrandQueue = (typeof errandQueues)[number];
export type ErrandState = 'scheduled' | 'ready' | 'pending' | 'poisoned';

/** An errand that a worker holds. */
export interface HeldErrand {
  readonly key: string;
  readonly lease: number;
}

export interface ErrandWish {
  readonly key: string;
  /** Milliseconds since 1970; undefined: now. */
  readonly runAt?: number;
}

export interface ReturnedErrand extends HeldErrand {
  readonly runAt: number;
  readonly reason?: string;
}

export interface PoisonedErrand {
  readonly key: string;
  readonly losses: number;
  readonly reason: string | null;
}

export interface Errands {
  /** Adds the errands that do not exist yet. Returns how many. */
  push(queue: ErrandQueue, errands: readonly ErrandWish[]): Promise<number>;
  /** Makes scheduled errands ready now. Returns how many were scheduled. */
  promote(queue: ErrandQueue, keys: readonly string[]): Promise<number>;
  /** Makes errands ready whose time has come, at most so many. Returns how many. */
  due(queue: ErrandQueue, now: number, most: number): Promise<number>;
  /** The time of the next scheduled errand. */
  nextDue(queue: ErrandQueue): Promise<number | undefined>;
  acquire(queue: ErrandQueue, worker: string, most: number, now: number): Promise<HeldErrand[]>;
  /** Removes finished errands. Returns the keys that the worker still held. */
  ack(queue: ErrandQueue, worker: string, held: readonly HeldErrand[]): Promise<string[]>;
  /** Schedules errands again. Returns the keys that the worker still held. */
  nack(queue: ErrandQueue, worker: string, held: readonly ReturnedErrand[]): Promise<string[]>;
  /** Notes that the worker lives and holds these. Returns the keys among them that it has lost. */
  beat(worker: string, held: readonly (HeldErrand & { readonly queue: ErrandQueue })[], now: number): Promise<string[]>;
  /** Takes back what silent workers hold, and poisons what was lost too often. Returns how many came back. */
  scrub(queue: ErrandQueue, silentBefore: number, mostLosses: number): Promise<number>;
  poisoned(queue: ErrandQueue): Promise<PoisonedErrand[]>;
  /** Makes poisoned errands ready. Returns how many. */
  revive(queue: ErrandQueue, keys: readonly string[]): Promise<number>;
  counts(queue: ErrandQueue): Promise<Readonly<Record<ErrandState, number>>>;
}
