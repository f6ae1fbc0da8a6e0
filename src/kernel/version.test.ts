import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions, isNewer, isVersion } from './version.ts';

/** From the oldest to the newest; the middle is the specification's own example. */
const ordered = [
  'no version',
  '0.0.9',
  '0.1.0',
  '0.1.1-test.a',
  '0.1.1-test.b',
  '0.1.1',
  '0.9.0',
  '0.10.0',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '1.0.1',
  '2.0.0',
  '10.0.0',
];

describe('the order of versions', () => {
  it('is that of Semantic Versioning', () => {
    expect(ordered.toReversed().toSorted(compareVersions)).toEqual(ordered);
  });

  it('is the same from both ends, and none is newer than itself', () => {
    const any = fc.constantFrom(...ordered);
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(ordered.indexOf(a) - ordered.indexOf(b)));
        expect(isNewer(a, b) && isNewer(b, a)).toBe(false);
      }),
    );
  });

  it('does not look at what follows a plus', () => {
    expect(compareVersions('1.0.0+build.7', '1.0.0')).toBe(0);
    expect(compareVersions('1.0.0-rc.1+7', '1.0.0')).toBeLessThan(0);
  });
});

it.each([
  ['0.1.0', true],
  ['1.0.0-rc.1', true],
  ['1.0.0+build-7', true],
  ['1.0', false],
  ['v1.0.0', false],
  ['1.0.0-', false],
  ['1.0.0/../..', false],
  ['..', false],
  ['', false],
  [`1.0.0-${'a'.repeat(100)}`, false],
])('%j is a version: %s', (text, is) => expect(isVersion(text)).toBe(is));
