/** Retention: removes what nobody needs any more. For now the leases of workers that have been gone for a day. */
import type { EngineContext } from '../contract/engine.ts';
import { onPool, sql } from '../kernel/sql.ts';

const dayMs = 24 * 3_600_000;

export function pruneTenant(ctx: EngineContext): Promise<number> {
  const before = new Date(ctx.time.now() - dayMs);
  return onPool(ctx.pool).exec(sql`delete from lease where until < ${before}`);
}
