/**
 * Writing of many of which the database may refuse some: all at once where it takes that; where it does not, by halves, until
 * those who are to blame are found and the others are written. A few among many are found in a few steps.
 */
import { isConnectionLoss, sqlStateOf } from '../errors.ts';
import { isTakenOver } from './lease.ts';

/** SQLSTATE, but of a server that lacks room or is at fault itself: nobody's rows are to blame for that. */
const answers = /^(?!25|53|54|57|58|XX)[0-9A-Z]{5}$/;

/** The database took the question and said no: asked without whoever is to blame, it would not. */
function isRefused(error: unknown): boolean {
  return answers.test(sqlStateOf(error) ?? '') && !isConnectionLoss(error) && !isTakenOver(error);
}

/** Answers those that were refused, and why. */
export async function writeHalves<T>(
  items: readonly T[],
  write: (items: readonly T[]) => Promise<void>,
): Promise<Map<T, unknown>> {
  const refused = new Map<T, unknown>();
  const writeSome = async (some: readonly T[]): Promise<void> => {
    const [first] = some;
    if (first === undefined) return;
    try {
      await write(some);
    } catch (error) {
      if (!isRefused(error)) throw error;
      if (some.length === 1) {
        refused.set(first, error);
        return;
      }
      const half = Math.ceil(some.length / 2);
      await writeSome(some.slice(0, half));
      await writeSome(some.slice(half));
    }
  };
  await writeSome(items);
  return refused;
}
