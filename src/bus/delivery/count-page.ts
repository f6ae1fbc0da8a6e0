/** Counts the events of one page for the readers to which they belong. An event is parsed once for all filters. */
import { Slices } from '../../kernel/process/slices.ts';
import type { BusEvent, ReaderCount } from '../store.ts';
import { elementOf, revisionFor, strandFor, type Subscriptions } from './subscriptions.ts';

/** Bytes of the array's brackets. Each event counts a comma, so the first event's comma stands for the second bracket. */
const frameBytes = 1;

interface Counting extends ReaderCount {
  events: number;
  isFull: boolean;
  bytes: number;
}

/** Hundreds of filters may take seconds for a page, so the work is done in slices. */
export async function countPage(
  subscriptions: Subscriptions,
  events: readonly BusEvent[],
): Promise<readonly ReaderCount[]> {
  const readers = new Map<string, Counting>();
  const slices = new Slices();
  for (const event of events) {
    const element = elementOf(event);
    for (const subscription of subscriptions.ofTopic(event.topicId)) {
      const revision = revisionFor(subscription, event, element);
      if (revision !== undefined) {
        const strand = strandFor(revision, event);
        const name = `${subscription.subscriber} ${strand}`;
        let count = readers.get(name);
        if (count === undefined) {
          const { maxEvents, windowMs } = revision;
          const dueAtMs = event.atMs + windowMs;
          const first = { subscriber: subscription.subscriber, strand, firstAtMs: event.atMs, dueAtMs, maxEvents };
          count = { ...first, events: 0, bytes: frameBytes, isFull: false };
          readers.set(name, count);
        }
        count.events += 1;
        count.bytes += event.bytes + 1;
        count.isFull ||= count.events >= count.maxEvents || count.bytes >= revision.maxBytes;
      }
      if (slices.isOver) await slices.pause();
    }
  }
  return [...readers.values()];
}
