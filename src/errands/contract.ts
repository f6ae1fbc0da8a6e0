/**
 * Errands: a queue of unique background work, with one driver on PostgreSQL and room for another on Redis.
 *
 * 1. An errand exists once, whatever its state. Pushing a known one creates no second one (I8).
 * 2. Its states: `scheduled` until its time comes, then `ready`, then `pending` at a worker, then gone. After too many losses
 *    in a row it is `poisoned`: set aside until somebody revives it.
 * 3. A write of a worker names the lease under which it holds the errand. It has no effect if the lease has passed on. An errand
 *    that is pushed after its end has a lease that no former errand of its key had.
 * 4. A worker names what it holds in each beat. Held errands that it does not name, and all errands of a silent worker,
 *    come back.
 * 5. Among ready errands, the one that has been ready for longest is taken first.
 * 6. No work is lost by a push that meets a pending errand: the errand's `ack` then makes it ready instead of removing it.
 * 7. `nack` and `progress` forget the losses, because the worker survived the errand. A beat does not: work that hangs until it
 *    is killed must be set aside one day.
 */

export const errandQueues = ['main', 'aux'] as const;
export type ErrandQueue = (typeof errandQueues)[number];
export const errandStates = ['scheduled', 'ready', 'pending', 'poisoned'] as const;
export type ErrandState = (typeof errandStates)[number];

/** An errand that a worker holds. */
export interface HeldErrand {
  readonly key: string;
  readonly lease: number;
}

export interface NamedErrand extends HeldErrand {
  readonly queue: ErrandQueue;
}

export interface TakenErrand extends HeldErrand {
  /** How often it was put back with a reason since it was pushed. */
  readonly attempts: number;
}

export interface ErrandWish {
  readonly key: string;
  /** Milliseconds since 1970; undefined: ready now. With a time, even a past one, it is scheduled until `due` is called. */
  readonly runAt?: number;
}

export interface ReturnedErrand extends HeldErrand {
  readonly runAt: number;
  /** Why it failed, which counts as an attempt. Undefined: it is given back unfinished. */
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
  /** Makes errands ready whose time has come, at most so many, the earliest first. Returns how many. */
  due(queue: ErrandQueue, now: number, most: number): Promise<number>;
  /** The time of the next scheduled errand. */
  nextDue(queue: ErrandQueue): Promise<number | undefined>;
  /** Takes the errands that have been ready for longest. It counts as a beat of the worker. */
  acquire(queue: ErrandQueue, worker: string, most: number, now: number): Promise<TakenErrand[]>;
  /**
   * Removes finished errands. Those that were pushed while they were held become ready instead. Returns the keys that the worker
   * still held.
   */
  ack(queue: ErrandQueue, worker: string, held: readonly HeldErrand[]): Promise<string[]>;
  /** Schedules errands again, and forgets their losses. Returns the keys that the worker still held. */
  nack(queue: ErrandQueue, worker: string, held: readonly ReturnedErrand[]): Promise<string[]>;
  /** Forgets the losses of errands whose work has advanced. Returns the keys that the worker still holds. */
  progress(queue: ErrandQueue, worker: string, held: readonly HeldErrand[]): Promise<string[]>;
  /**
   * Notes that the worker lives and holds these. Returns those among them that it has lost. What it holds and has not named for
   * `errandTimes.unnamedMs` comes back, which is a loss.
   */
  beat(worker: string, held: readonly NamedErrand[], now: number): Promise<NamedErrand[]>;
  /**
   * Takes back what silent workers hold, and those that are known to be `lost`; poisons what was lost too often. Returns how many
   * came back or were poisoned.
   */
  scrub(queue: ErrandQueue, silentBefore: number, mostLosses: number, lost?: readonly string[]): Promise<number>;
  /** The first thousand, by key. */
  poisoned(queue: ErrandQueue): Promise<PoisonedErrand[]>;
  /** Makes poisoned errands ready, and forgets their losses. Returns how many. */
  revive(queue: ErrandQueue, keys: readonly string[]): Promise<number>;
  counts(queue: ErrandQueue): Promise<Readonly<Record<ErrandState, number>>>;
}

/** The times of workers and their errands, in milliseconds (design: bus.md, 9.3). */
export const errandTimes = {
  /** Between two beats, while something is held. */
  beatMs: 2_000,
  /** A held errand that its worker has not named in its heartbeats for this time is returned: two heartbeats may fail. */
  unnamedMs: 5_000,
  /** A worker that has been silent for this time loses all its errands: four heartbeats may fail. */
  silentMs: 10_000,
  /** Between two looks for silent workers. */
  scrubMs: 5_000,
} as const;

export const errandLimits = {
  /** Losses in a row, without progress, after which an errand is poisoned. */
  mostLosses: 5,
  /** The maximum length of a stored reason, in characters. */
  reasonChars: 1_000,
} as const;
