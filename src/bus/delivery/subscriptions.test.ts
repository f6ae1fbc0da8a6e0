import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryLog, arbitraryRevision, arbitraryRevisions, subscriber } from '../../../test/bus/arbitrary.ts';
import { strandOf } from '../strand.ts';
import type { BusEvent, RevisionRow } from '../store.ts';
import { BatchBuilder } from './batch.ts';
import { countPage } from './count-page.ts';
import { revisionAt, revisionFor, Subscriptions, topicsAfter } from './subscriptions.ts';

const row = (fromSeq: number, more: Partial<RevisionRow> = {}): RevisionRow => {
  const limits = { maxEvents: 2, maxBytes: 1_000, windowMs: 100, quiet: false, strands: 1 };
  return { subscriber, fromSeq, originSeq: fromSeq, version: fromSeq, topics: [1], filter: null, ...limits, ...more };
};
const event = (seq: number, more: Partial<BusEvent> = {}): BusEvent => {
  return { seq, topicId: 1, keyHash: 0, target: null, atMs: seq, body: '{"type":"update"}', bytes: 17, ...more };
};

/** The row in force at a number, found without the code under test. */
function rowAt(rows: readonly RevisionRow[], seq: number): RevisionRow | undefined {
  return rows.findLast(({ fromSeq }) => fromSeq < seq);
}

describe('subscriptions', () => {
  it.each([
    ['of its topic', event(6), true],
    ['at the number of the revision', event(5), false],
    ['of another topic', event(6, { topicId: 2 }), false],
    ['for this subscriber', event(6, { target: subscriber }), true],
    ['for another subscriber', event(6, { target: '00000000-0000-7000-8000-00000000000b' }), false],
    ['that the filter rejects', event(6, { body: '{"type":"delete"}' }), false],
  ])('decide about an event %s', (_, given, isTheirs) => {
    const subscription = new Subscriptions(1, [row(5, { filter: { type: 'update' } })]).of(subscriber);
    expect(subscription && revisionFor(subscription, given) !== undefined).toBe(isTheirs);
  });

  it('know the last change of strands up to each revision', () => {
    const rows = [row(1), row(3), row(5, { strands: 2 }), row(7, { strands: 2 }), row(9)];
    const revisions = new Subscriptions(1, rows).of(subscriber)?.revisions ?? [];
    expect(revisions.map(({ barrier }) => barrier)).toEqual([-1, -1, 5, 5, 9]);
  });

  it('use the revision in force at a number, and read every topic that can matter after it', () => {
    fc.assert(
      fc.property(arbitraryRevisions, fc.nat(45), fc.nat(45), (rows, seq, later) => {
        const subscription = new Subscriptions(1, rows).of(subscriber);
        if (subscription === undefined) throw new Error('no revision');
        expect(revisionAt(subscription, seq)?.fromSeq).toBe(rowAt(rows, seq)?.fromSeq);
        const topics = topicsAfter(subscription, seq);
        expect(topics).toEqual(expect.arrayContaining([...(rowAt(rows, seq + 1 + later)?.topics ?? [])]));
      }),
    );
  });
});

describe('the count of a page', () => {
  it('has each event once for each reader, by the revision at its number', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryLog, arbitraryRevisions, async (log, rows) => {
        const expected = new Map<number, number>();
        for (const { seq, topicId, keyHash, target } of log) {
          const found = rowAt(rows, seq);
          if (!found?.topics.includes(topicId) || (target !== null && target !== subscriber)) continue;
          const strand = strandOf(keyHash, found.strands);
          expected.set(strand, (expected.get(strand) ?? 0) + 1);
        }
        const readers = await countPage(new Subscriptions(1, rows), log);
        expect(new Map(readers.map(({ strand, events }) => [strand, events]))).toEqual(expected);
      }),
    );
  });

  it('is the same for a log that is read in two pages', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryLog, arbitraryRevisions, fc.nat(40), async (log, rows, end) => {
        const subscriptions = new Subscriptions(1, rows);
        const totals = async (pages: readonly (readonly BusEvent[])[]): Promise<Record<string, number>> => {
          const sums: Record<string, number> = {};
          for (const page of pages)
            for (const { strand, events } of await countPage(subscriptions, page))
              sums[strand] = (sums[strand] ?? 0) + events;
          return sums;
        };
        expect(await totals([log.slice(0, end), log.slice(end)])).toEqual(await totals([log]));
      }),
    );
  });

  it('is full if the page closes a batch', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryLog, arbitraryRevision, async (log, revision) => {
        const subscriptions = new Subscriptions(1, [revision]);
        const subscription = subscriptions.of(subscriber);
        if (subscription === undefined) throw new Error('no revision');
        for (const { strand, isFull } of await countPage(subscriptions, log)) {
          const builder = new BatchBuilder({ subscription, strand, batchEnd: null });
          for (const each of log) if (!builder.offer(each)) break;
          expect(isFull).toBe(builder.isClosed);
        }
      }),
    );
  });

  it('is full if its events have exactly as many bytes as a batch may have', async () => {
    const bytes = '[{},{}]'.length;
    const small = (seq: number): BusEvent => event(seq, { body: '{}', bytes: 2 });
    for (const [maxBytes, isFull] of [
      [bytes, true],
      [bytes + 1, false],
    ] as const) {
      const subscriptions = new Subscriptions(1, [row(0, { maxBytes, maxEvents: 9 })]);
      expect(await countPage(subscriptions, [small(1), small(2)])).toMatchObject([{ isFull }]);
    }
  });

  it('is due at the end of the window of its first event', async () => {
    const readers = await countPage(new Subscriptions(1, [row(0, { windowMs: 50 })]), [event(3), event(9)]);
    expect(readers).toMatchObject([{ events: 2, firstAtMs: 3, dueAtMs: 53, maxEvents: 2, isFull: true }]);
  });

  /** Subscribers whose filters all look at many fields. */
  const filtering = (count: number, fields: number): Subscriptions => {
    const filter = Object.fromEntries(Array.from({ length: fields }, (_, i) => [`data.f${i}`, { $exists: false }]));
    const rows = Array.from({ length: count }, (_, i) => row(0, { subscriber: `subscriber ${i}`, filter }));
    return new Subscriptions(1, rows);
  };

  it('parses an event once for all filters', async () => {
    let reads = 0;
    const read = Object.defineProperty(event(1), 'body', { get: () => (reads++, '{"type":"update"}') });
    expect(await countPage(filtering(3, 1), [read])).toHaveLength(3);
    expect(reads).toBe(1);
  });

  it('lets other work of the process go on', async () => {
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    await countPage(
      filtering(200, 200),
      Array.from({ length: 200 }, (_, i) => event(i + 1)),
    );
    isOver = true;
    expect(turns).toBeGreaterThan(2);
  });
});
