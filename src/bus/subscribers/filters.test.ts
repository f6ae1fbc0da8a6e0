import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BusElement, filterFaults, filterLimits, matches, parseFilter } from './filters.ts';

const element: BusElement = {
  topic: 'orders',
  type: 'update',
  url: 'https://shop.example/orders/1',
  t: 1_000,
  data: { amount: 100, country: 'DE', tags: ['a', 'b'], nothing: null, inner: { deep: true } },
  id: '7',
};
const passes = (filter: unknown): boolean => matches(parseFilter(filter), element);

describe('filters', () => {
  it.each([
    [{}, true],
    [{ type: 'update' }, true],
    [{ type: 'create' }, false],
    [{ type: ['create', 'update'] }, true],
    [{ topic: 'orders', type: 'create' }, false],
    [{ url: { startsWith: 'https://shop.example/' } }, true],
    [{ url: { $startsWith: 'https://other/' } }, false],
    [{ 'data.amount': { $gte: 100, $lt: 101 } }, true],
    [{ 'data.amount': { $gt: 100 } }, false],
    [{ 'data.amount': { $lte: '100' } }, false],
    [{ 'data.country': { $in: ['AT', 'DE'] } }, true],
    [{ 'data.country': { $not: { $in: ['AT', 'DE'] } } }, false],
    [{ 'data.country': { $not: 'AT' } }, true],
    [{ 'data.inner.deep': true }, true],
    [{ 'data.tags.1': 'b' }, true],
    [{ 'data.missing': { $exists: false } }, true],
    [{ 'data.nothing': { $exists: true } }, true],
    [{ 'data.nothing': null }, true],
    [{ 'data.missing': null }, false],
    [{ 'data.toString': { $exists: true } }, false],
    [{ t: { $lt: 2_000 } }, true],
    [{ $or: [{ type: 'create' }, { 'data.amount': 100 }] }, true],
    [{ $or: [{ type: 'create' }, { 'data.amount': 1 }] }, false],
    [{ $not: { type: 'update', 'data.amount': 1 } }, true],
  ])('%j passes: %s', (filter, expected) => {
    expect(passes(filter)).toBe(expected);
  });

  it('no filter admits everything', () => {
    expect(matches(null, element)).toBe(true);
  });

  it('every fault is reported with its path', () => {
    const filter = { colour: 1, 'data.a': { $regex: 'x' }, $or: [{ type: { $in: 'x' } }, 3], url: {} };
    expect(filterFaults(filter).map(({ path }) => path.join('/'))).toEqual([
      'colour',
      'data.a/$regex',
      '$or/0/type/$in',
      '$or/1',
      'url',
    ]);
    expect(() => parseFilter(filter)).toThrow('filter.colour');
  });

  it('a filter that is too long or too deep is rejected', () => {
    expect(filterFaults({ type: 'x'.repeat(filterLimits.maxChars) })).toHaveLength(1);
    let deep: object = { type: 'x' };
    for (let i = 0; i <= filterLimits.maxDepth; i++) deep = { $not: deep };
    expect(filterFaults(deep)).toHaveLength(1);
  });

  it('any JSON is either rejected with faults, or matches any event without an error', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue()), (filter, data) => {
        if (filterFaults(filter).length > 0) expect(() => parseFilter(filter)).toThrow();
        else expect(typeof matches(parseFilter(filter), { ...element, data })).toBe('boolean');
      }),
    );
  });

  it('a filter and its negation never agree', () => {
    const scalar = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null));
    const condition = fc.oneof(
      scalar,
      fc.array(scalar),
      fc.record({ $gte: fc.integer() }),
      fc.record({ $startsWith: fc.string() }),
      fc.record({ $exists: fc.boolean() }),
    );
    const field = fc.constantFrom('type', 'url', 'data.amount', 'data.country', 'data.missing');
    fc.assert(
      fc.property(fc.dictionary(field, condition), (filter) => {
        expect(passes({ $not: filter })).toBe(!passes(filter));
      }),
    );
  });
});
