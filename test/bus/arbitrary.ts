/** Random logs and subscriptions of the bus, for properties of its pure parts. */
import * as fc from 'fast-check';
import type { BusEvent, RevisionRow } from '../../src/bus/store.ts';

export const subscriber = '00000000-0000-7000-8000-00000000000a';
const other = '00000000-0000-7000-8000-00000000000b';

/** Events 1, 2, 3, … of three topics and four keys. */
export const arbitraryLog: fc.Arbitrary<BusEvent[]> = fc
  .array(
    fc.record({
      topicId: fc.integer({ min: 1, max: 3 }),
      keyHash: fc.integer({ min: -2, max: 2 }),
      target: fc.constantFrom(null, null, null, subscriber, other),
      stepMs: fc.integer({ min: 0, max: 50 }),
      body: fc.constantFrom('{}', '{"a":1}', '{"a":"ä"}', '{"long":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'),
    }),
    { maxLength: 40 },
  )
  .map((rows) => {
    let atMs = 0;
    return rows.map(({ stepMs, ...row }, i) => {
      atMs += stepMs;
      return { ...row, seq: i + 1, atMs, bytes: Buffer.byteLength(row.body) };
    });
  });

export const arbitraryRevision = fc.record({
  subscriber: fc.constant(subscriber),
  fromSeq: fc.integer({ min: 0, max: 40 }),
  originSeq: fc.integer({ min: 0, max: 40 }),
  version: fc.integer({ min: 0, max: 40 }),
  topics: fc.uniqueArray(fc.integer({ min: 1, max: 3 })),
  filter: fc.constant(null),
  maxEvents: fc.integer({ min: 1, max: 6 }),
  maxBytes: fc.integer({ min: 1, max: 80 }),
  windowMs: fc.integer({ min: 0, max: 100 }),
  quiet: fc.boolean(),
  strands: fc.integer({ min: 1, max: 3 }),
});

/** Revisions of one subscriber, oldest first. */
export const arbitraryRevisions: fc.Arbitrary<RevisionRow[]> = fc
  .uniqueArray(arbitraryRevision, { minLength: 1, maxLength: 4, selector: ({ fromSeq }) => fromSeq })
  .map((rows) => rows.toSorted((a, b) => a.fromSeq - b.fromSeq));
