/** One transaction with its events, which a dry run rolls back. The result is that of the work either way. */
import type { Caller } from '../../contract/roles.ts';
import { type Recording, recording } from '../../events/append.ts';
import { type ApiContext, author } from '../context.ts';

class DryRunRollback<T> extends Error {
  readonly result: T;

  constructor(result: T) {
    super('dry run');
    this.result = result;
  }
}

interface Asked {
  readonly dryRun: boolean;
  readonly caller: Caller | undefined;
}

export type Who = ReturnType<typeof author>;

export async function recordUnlessDry<T>(
  ctx: ApiContext,
  { dryRun, caller }: Asked,
  work: (tx: Recording, who: Who) => Promise<T>,
): Promise<T> {
  const who = author(ctx, caller);
  try {
    return await recording(ctx.db, who, async (tx) => {
      const result = await work(tx, who);
      if (dryRun) throw new DryRunRollback(result);
      return result;
    });
  } catch (error) {
    if (error instanceof DryRunRollback) return error.result as T;
    throw error;
  }
}
