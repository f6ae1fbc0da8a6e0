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

/** Rejects with the first refusal once all others are done, and with any other error at once. */
export async function workApart<T>(items: readonly T[], work: (some: readonly T[]) => Promise<void>): Promise<void> {
  const refusals: unknown[] = [];
  const workOn = async (some: readonly T[]): Promise<void> => {
    if (some.length === 0 || refusals.length > mostRefused) return;
    try {
      await work(some);
    } catch (error) {
      if (!isRefused(error)) throw error;
      if (some.length === 1) {
        refusals.push(error);
        return;
      }
      const half = Math.ceil(some.length / 2);
      await workOn(some.slice(0, half));
      await workOn(some.slice(half));
    }
  };
  await workOn(items);
  if (refusals.length > 0) throw refusals[0];
}
