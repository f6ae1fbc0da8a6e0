/**
 * When a tenant's pool opens another connection. Most statements end sooner than a connection is opened, and with hundreds of
 * tenants every connection counts. So a caller that finds all connections busy waits:
 *
 * 1. for a moment, which is as long as opening a connection took lately, but at least 15 ms;
 * 2. then while the budget rests, because the process has just opened a connection for some tenant;
 * 3. altogether for at most 2 s.
 *
 * Both kinds of pool follow this rule. A host keeps the connection that holds its scheduler's lock and lends it (`kept-pool.ts`); a
 * gateway holds no lock and uses the pool of pg (`patient-pool.ts`). A process has one pool for each tenant.
 */
import { within } from '../../kernel/service.ts';
import type { ConnectionBudget } from './connection-budget.ts';

export const usualMomentMs = 15;
const maxWaitMs = 2_000;

export interface Patience {
  readonly budget: Pick<ConnectionBudget, 'openMs' | 'restMs'> | undefined;
  readonly momentMs: number;
  /** Whether no connection is free for this caller yet. */
  readonly isWaiting: () => boolean;
  /** Resolves when a connection may have become free. */
  readonly freed: () => Promise<unknown>;
}

/** Returns when a connection is free, or when it is time to open another. */
export async function waitPatiently({ budget, momentMs, isWaiting, freed }: Patience): Promise<void> {
  const nowMs = performance.now();
  const momentEndMs = nowMs + Math.max(momentMs, budget?.openMs ?? 0);
  const lastMs = Math.max(momentEndMs, nowMs + maxWaitMs);
  const leftMs = (): number => {
    const atMs = performance.now();
    return Math.min(Math.max(momentEndMs - atMs, budget?.restMs ?? 0), lastMs - atMs);
  };
  for (let ms = leftMs(); isWaiting() && ms > 0; ms = leftMs()) await within(ms, freed());
}
