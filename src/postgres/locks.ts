/**
 * The advisory locks of a database, in one place so that no two ever share a number. SQL functions have four of their
 * own: the event log's is (7345, 1), the low-water marks' 5, pruning's 6, the bus log's 8.
 */

const space = 7345;

export const locks = {
  /** Held exclusively by whoever migrates: ten processes that start at once migrate once. */
  migrate: [space, 2],
  /** Exclusive, session: the one scheduler of a tenant (I5). */
  singleton: [space, 3],
  /** Shared by every connection of an engine to a tenant; exclusive for a migration's transaction (I6). */
  drain: [space, 4],
  /** Exclusive, transaction: one at a time applies a job that refers to others. */
  refer: [space, 7],
  /** In the control database, with a tenant's name hashed beside it: one step of that tenant's life at a time. */
  life: 7346,
} as const satisfies Record<string, readonly [number, number] | number>;
