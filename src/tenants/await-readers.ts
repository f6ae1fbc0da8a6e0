/**
 * Before a tenant is stopped for a migration, waits for transactions of other sessions that have its tables open (a report, a
 * backup). The tenant still runs meanwhile. A migration that has begun waits for them as well, but then the tenant is down.
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
/** If readers remain, the migration is tried anyway, since it may not need their tables. The tenant is down at most this long. */
const maxDownMs = 5_000;

/** Returns how many milliseconds the migration may wait for locks once the tenant is down. */
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
    // a database that cannot be queried cannot be migrated either, and the migration reports why
  }).catch(() => lockMs);
}
