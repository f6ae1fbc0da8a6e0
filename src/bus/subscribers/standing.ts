/**
 * Tells the installation how many subscribers the tenant has, because couriers look only at tenants that have some.
 *
 * The count is in another database than the subscribers. It is raised before a subscriber is created, so a death in between
 * leaves a count that is too high, which costs couriers a look. After a removal it is read again until it has not changed
 * meanwhile, so of several callers the last one writes the truth.
 */
import type { BusContext } from './context.ts';
import { countSubscribers } from './queries.ts';

/** Call it before the commit that creates subscribers. */
export async function announceSubscribers(ctx: BusContext, more: number): Promise<void> {
  await ctx.directory.noteBus?.({ subscribers: (await countSubscribers(ctx.db)) + more });
}

/** Call it after the commit of a change that may have changed their number. */
export async function noteSubscribers(ctx: BusContext): Promise<void> {
  if (ctx.directory.noteBus === undefined) return;
  for (let noted = -1; ; ) {
    const subscribers = await countSubscribers(ctx.db);
    if (subscribers === noted) return;
    await ctx.directory.noteBus({ subscribers });
    noted = subscribers;
  }
}
