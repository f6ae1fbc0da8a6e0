/**
 * Work on many things in one commit, of which the database may refuse some: a row that breaks a constraint, a trigger of
 * somebody's that raises. The batch is halved until those to blame are found, and the others are done.
 */
import { sqlStateOf } from '../errors.ts';

/** More refused ones than this are no exception: the fault concerns all of them. */
const mostRefused = 16;

/** The database refused a value or a row (classes 22 and 23), or code in it raised (P0): without that one it would not. */
export function isRefused(error: unknown): boolean {
  return /^(?:22|23|P0)/.test(sqlStateOf(error) ?? '');
}

/** Answers what was refused, and why. Rejects where too much is refused, and with any other error at once. */
export async function workApart<T>(
  items: readonly T[],
  work: (some: readonly T[]) => Promise<void>,
): Promise<ReadonlyMap<T, unknown>> {
  const refused = new Map<T, unknown>();
  const workOn = async (some: readonly T[]): Promise<void> => {
    const [first] = some;
    if (first === undefined) return;
    try {
      await work(some);
    } catch (error) {
      if (!isRefused(error) || refused.size === mostRefused) throw error;
      if (some.length === 1) {
        refused.set(first, error);
        return;
      }
      const half = Math.ceil(some.length / 2);
      await workOn(some.slice(0, half));
      await workOn(some.slice(half));
    }
  };
  await workOn(items);
  return refused;
}
