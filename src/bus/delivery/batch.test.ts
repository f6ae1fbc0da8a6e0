import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryLog, arbitraryRevisions, subscriber } from '../../../test/bus/arbitrary.ts';
import type { BusEvent, RevisionRow } from '../store.ts';
import { BatchBuilder, batchBody, batchId, closesAtMs } from './batch.ts';
import { revisionFor, strandFor, type Subscription, Subscriptions } from './subscriptions.ts';

const arbitraryStrand = fc.integer({ min: 0, max: 2 });

function subscriptionOf(rows: readonly RevisionRow[]): Subscription {
  const subscription = new Subscriptions(1, rows).of(subscriber);
  if (subscription === undefined) throw new Error('no revision');
  return subscription;
}

function gather(
  reader: ConstructorParameters<typeof BatchBuilder>[0],
  log: readonly BusEvent[],
  pos = 0,
): BatchBuilder {
  const builder = new BatchBuilder(reader);
  for (const event of log) if (event.seq > pos && !builder.offer(event)) break;
  return builder;
}

/** Events of a strand, found without the builder. */
function eventsOf(subscription: Subscription, strand: number, log: readonly BusEvent[]): BusEvent[] {
  return log.filter((event) => {
    const revision = revisionFor(subscription, event);
    return revision !== undefined && strandFor(revision, event) === strand;
  });
}

describe('a batch', () => {
  it('that is closed has the same events, however much of the log is known', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRevisions, arbitraryStrand, fc.nat(40), (log, rows, strand, known) => {
        const reader = { subscription: subscriptionOf(rows), strand, batchEnd: null };
        const early = gather(reader, log.slice(0, known));
        const late = gather(reader, log);
        if (early.isClosed) expect([late.isClosed, late.events]).toEqual([true, early.events]);
        else expect(late.events.slice(0, early.events.length)).toEqual(early.events);
      }),
    );
  });

  it('follows another without a gap, until all events of the strand are in one', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRevisions, arbitraryStrand, (log, rows, strand) => {
        const subscription = subscriptionOf(rows);
        const seen: BusEvent[] = [];
        for (let pos = 0; ; pos = seen.at(-1)?.seq ?? pos) {
          const { events, isClosed } = gather({ subscription, strand, batchEnd: null }, log, pos);
          seen.push(...events);
          if (!isClosed || events.length === 0) break;
        }
        expect(seen).toEqual(eventsOf(subscription, strand, log));
      }),
    );
  });

  it('stays within the limits of the revision of its first event, and does not cross a change of strands', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRevisions, arbitraryStrand, (log, rows, strand) => {
        const subscription = subscriptionOf(rows);
        const { events, bytes, revision } = gather({ subscription, strand, batchEnd: null }, log);
        if (revision === undefined) return;
        expect(bytes).toBe(Buffer.byteLength(batchBody(events)));
        expect(events.length).toBeLessThanOrEqual(revision.maxEvents);
        if (events.length > 1) expect(bytes).toBeLessThanOrEqual(revision.maxBytes);
        for (const event of events) expect(revisionFor(subscription, event)?.barrier).toBe(revision.barrier);
      }),
    );
  });

  it('with a stored end has the events up to it, whatever the limits are', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRevisions, arbitraryStrand, fc.nat(40), (log, rows, strand, batchEnd) => {
        const subscription = subscriptionOf(rows);
        const builder = gather({ subscription, strand, batchEnd }, log);
        builder.noteEnd(batchEnd);
        const expected = eventsOf(subscription, strand, log).filter(({ seq }) => seq <= batchEnd);
        expect(builder.events).toEqual(expected);
        if (expected.length > 0) expect(builder.isClosed).toBe(true);
      }),
    );
  });

  it('of a replay has the events of all strands', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRevisions, (log, rows) => {
        const subscription = subscriptionOf(rows);
        const { events } = gather({ subscription, strand: undefined, batchEnd: 40 }, log);
        expect(events).toEqual(log.filter((event) => revisionFor(subscription, event) !== undefined));
      }),
    );
  });
});

const event = (seq: number, atMs: number): BusEvent => {
  return { seq, topicId: 1, keyHash: 0, target: null, atMs, body: '{}', bytes: 2 };
};

it.each([
  [{ quiet: false, windowMs: 100 }, 110],
  [{ quiet: true, windowMs: 100 }, 130],
  [{ quiet: false, windowMs: 0 }, 10],
])('an open batch with %o may be closed at %i ms', (window, atMs) => {
  const [revision] = subscriptionOf([
    {
      subscriber,
      fromSeq: 0,
      originSeq: 0,
      version: 0,
      topics: [1],
      filter: null,
      maxEvents: 9,
      maxBytes: 99,
      strands: 1,
      ...window,
    },
  ]).revisions;
  if (revision === undefined) throw new Error('no revision');
  expect(closesAtMs([event(1, 10), event(2, 20), event(3, 30)], revision)).toBe(atMs);
});

it.each([
  ['the subscriber, the strand, the first and the last event', 2, { originSeq: 4, strands: 3 }, '2'],
  ['the version of the terms, if the first event is older than they are', 2, { originSeq: 5, strands: 3 }, '2r7'],
  ['only the version, if there is one strand', 0, { originSeq: 5, strands: 1 }, 'r7'],
  ['the same for a replay of one strand', undefined, { originSeq: 4, strands: 1 }, '0'],
  ['the same for a replay of older events of one strand', undefined, { originSeq: 5, strands: 1 }, 'r7'],
  ['the version for a replay of several strands', undefined, { originSeq: 4, strands: 3 }, 'r7'],
])('the id of a batch names %s', (_, strand, terms, label) => {
  const revision = { ...terms, version: 7 };
  const id = batchId({ subscriber, strand, revision, events: [event(5, 0), event(9, 0)] });
  expect(id).toBe(`0000000a_${label}_5_9`);
});
