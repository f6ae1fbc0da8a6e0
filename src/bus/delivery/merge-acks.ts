/** Acknowledgements of consecutive batches of one reader are one move. Pure. */
import { deliverKey } from '../errand-keys.ts';
import type { Done } from '../store.ts';

export interface MergedAcks {
  readonly merged: readonly Done[];
  /** For each acknowledgement, the index of the move that contains it. */
  readonly indexes: readonly number[];
}

/** A statement moves each reader once: an acknowledgement that does not continue the one before it replaces it. */
export function mergeAcks(acks: readonly Done[]): MergedAcks {
  const merged: Done[] = [];
  const byReader = new Map<string, number>();
  const indexes = acks.map((ack) => {
    const key = deliverKey(ack);
    const index = byReader.get(key);
    const before = index === undefined ? undefined : merged[index];
    if (index === undefined || before === undefined) {
      byReader.set(key, merged.length);
      return merged.push(ack) - 1;
    }
    const isNext = before.to === ack.from && before.lease === ack.lease;
    const { events, batches } = before;
    merged[index] = isNext
      ? { ...ack, from: before.from, events: events + ack.events, batches: batches + ack.batches }
      : ack;
    return index;
  });
  return { merged, indexes };
}
