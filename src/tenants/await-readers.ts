/**
 * Before a tenant is stopped for a migration: transactions of others that have its tables open (a report, a backup) are
 * waited for while it still runs. A migration that has begun waits for them as well, but then the tenant is down.
 */
import { onClient } from '../kernel/sql.ts';
import { pause } from '../kernel/service.ts';
import { usualLockMs } from '../postgres/drained.ts';
import type { TenantRow } from '../control/queries.ts';
import { onConnection } from './drained-work.ts';
import { holdersOfTables } from '../control/blockers.ts';
import type { Life } from './life.ts';

/** Transactions younger than this are ignored; the next check finds those that last. */
const lookEveryMs = 250;
/** A migration may not need what the reader has: it is tried all the same, but the tenant is down only for this long. */
const maxDownMs = 5_000;

/** Answers how long the migration may wait for locks once the tenant is down. */
export function awaitReaders(life: Life, row: TenantRow): Promise<number> {
  const { lockMs = usualLockMs } = life;
  return onConnection(life.addressOf(row), async (client) => {
    const db = onClient(client);
    for (const until = performance.now() + lockMs; ; ) {
      await pause(lookEveryMs);
      const readers = await holdersOfTables(db, lookEveryMs);
      if (readers.length === 0) return lockMs;
      if (performance.now() > until) return Math.min(lockMs, maxDownMs);
    }
    // a database that cannot be asked cannot be migrated either, and the migration says why
  }).catch(() => lockMs);
}
