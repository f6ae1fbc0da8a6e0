import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Done } from '../store.ts';
import { mergeAcks } from './merge-acks.ts';

const ack = (from: number, to: number, more: Partial<Done> = {}): Done => {
  return { subscriber: 'a', strand: 0, lease: 1, from, to, events: to - from, batches: 1, nextAtMs: null, ...more };
};

describe('acknowledgements', () => {
  it('of consecutive batches are one move, which knows the time after the last', () => {
    const acks = [ack(0, 3, { nextAtMs: 7 }), ack(5, 6, { strand: 1 }), ack(3, 4, { nextAtMs: 8 })];
    expect(mergeAcks(acks)).toEqual({
      merged: [ack(0, 4, { batches: 2, nextAtMs: 8 }), ack(5, 6, { strand: 1 })],
      indexes: [0, 1, 0],
    });
  });

  it.each([
    ['after a gap', [ack(0, 3), ack(4, 5)], ack(4, 5)],
    ['of another lease', [ack(0, 3), ack(3, 5, { lease: 2 })], ack(3, 5, { lease: 2 })],
    ['that is repeated', [ack(0, 3), ack(0, 3)], ack(0, 3)],
  ])('%s replace the one before', (_, acks, expected) => {
    expect(mergeAcks(acks).merged).toEqual([expected]);
  });

  it('move each reader once, and only past events that were acknowledged', () => {
    const arbitrary = fc.array(
      fc
        .record({ strand: fc.nat(2), lease: fc.nat(1), from: fc.nat(6), length: fc.integer({ min: 1, max: 3 }) })
        .map(({ from, length, ...more }) => ack(from, from + length, more)),
    );
    fc.assert(
      fc.property(arbitrary, (acks) => {
        const { merged, indexes } = mergeAcks(acks);
        expect(new Set(merged.map(({ strand }) => strand)).size).toBe(merged.length);
        expect(acks.map(({ strand }) => strand)).toEqual(indexes.map((index) => merged[index]?.strand));
        for (const move of merged) {
          expect(move.events).toBe(move.to - move.from);
          const own = acks.filter(({ strand, lease }) => strand === move.strand && lease === move.lease);
          for (let seq = move.from + 1; seq <= move.to; seq++)
            expect(own.some(({ from, to }) => from < seq && seq <= to)).toBe(true);
        }
      }),
    );
  });
});
