/**
 * The advisory locks of a database, in one place so that no two ever share a number. SQL functions have six of their
 * own: the event log's is (7345, 1), the low-water marks' 5, pruning's 6, the bus log's 8, the queues of errands 9 and 10.
 */

const space = 7345;

export const locks = {
  /** Exclusive, for a migration: ten processes that start at once migrate once. */
  migrate: [space, 2],
  /** Exclusive, session: the one scheduler of a tenant (I5). */
  singleton: [space, 3],
  /** Shared by every connection of an engine to a tenant; exclusive for a migration's transaction (I6). */
  drain: [space, 4],
  /** Exclusive, transaction: jobs that refer to others are applied one at a time. */
  refer: [space, 7],
  /** In the control database, with the hash of a tenant's name: one change of that tenant at a time. */
  life: 7346,
} as const satisfies Record<string, readonly [number, number] | number>;
