/**
 * Writes a batch of which the receiver may reject some items: a row that violates a constraint, a row that another session
 * has locked, a malformed report. The batch is written as a whole. If it is rejected, each half is written separately, and so
 * on. In the end every valid item is written, and each rejected item is returned with its error. One rejected item among n
 * costs about 2·log2(n) additional writes.
 *
 * `write` must be atomic: it writes all the items that it is given, or it throws and writes none.
 */

export interface IsolateOptions {
  /** Whether the items caused an error. With any other error the whole call rejects at once. */
  readonly isRejection: (error: unknown) => boolean;
  /** With more rejected items than this the call rejects: the cause is not in the items. Default: no limit. */
  readonly maxRejected?: number;
}

/** Returns the rejected items, each with its error. */
export async function isolateRejected<T>(
  items: readonly T[],
  write: (some: readonly T[]) => Promise<void>,
  { isRejection, maxRejected = Number.POSITIVE_INFINITY }: IsolateOptions,
): Promise<Map<T, unknown>> {
  const rejected = new Map<T, unknown>();
  const writeSome = async (some: readonly T[]): Promise<void> => {
    const [first] = some;
    if (first === undefined) return;
    try {
      await write(some);
    } catch (error) {
      if (!isRejection(error) || rejected.size >= maxRejected) throw error;
      if (some.length === 1) {
        rejected.set(first, error);
        return;
      }
      const half = Math.ceil(some.length / 2);
      await writeSome(some.slice(0, half));
      await writeSome(some.slice(half));
    }
  };
  await writeSome(items);
  return rejected;
}
