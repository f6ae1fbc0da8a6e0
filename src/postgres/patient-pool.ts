/**
 * A pool that opens another connection only when those it has are busy for longer than a moment. Most of what a tenant is
 * asked for is over sooner than a connection is made, and of hundreds of tenants each connection that is not made counts:
 * a new one plans anew whatever is asked of it.
 */
import type { Pool, PoolClient } from 'pg';
import { within } from '../kernel/service.ts';
import type { ConnectionBudget } from './connection-budget.ts';

type Callback = (error: Error | undefined, client: PoolClient | undefined, release: () => void) => void;

const usualMomentMs = 15;

/** A moment is as long as opening one takes, and as the rest that follows, which the budget knows. */
export function makePatient(pool: Pool, budget: ConnectionBudget, momentMs = usualMomentMs): Pool {
  const connectNow = pool.connect.bind(pool);
  const line = new Set<() => void>();
  // a connection that is given back is idle right after this
  pool.on('release', () => queueMicrotask(() => callFirst(line)));
  const mayWait = (): boolean => {
    const { totalCount, idleCount, waitingCount, options, ending } = pool;
    // some of those that are idle may be promised to others
    return totalCount > 0 && idleCount <= waitingCount && totalCount < options.max && !ending;
  };
  const connect = async (): Promise<PoolClient> => {
    let ms = Math.max(momentMs, budget.openMs);
    for (; mayWait() && ms > 0; ms = budget.restMs) await turnIn(line, ms);
    return mayWait() ? budget.opening(connectNow) : connectNow();
  };
  const served = (callback?: Callback): Promise<PoolClient> | void => {
    const connecting = connect();
    if (callback === undefined) return connecting;
    const tell = callback;
    connecting.then(
      (client) => tell(undefined, client, () => client.release()),
      (error: Error) => tell(error, undefined, () => {}),
    );
  };
  return Object.assign(pool, { connect: served as Pool['connect'] });
}

function callFirst(line: Set<() => void>): void {
  for (const call of line) {
    line.delete(call);
    return call();
  }
}

/** Until it is called, or so long. */
async function turnIn(line: Set<() => void>, ms: number): Promise<void> {
  let call = (): void => {};
  const called = new Promise<void>((resolve) => (call = resolve));
  line.add(call);
  await within(ms, called);
  line.delete(call);
}
