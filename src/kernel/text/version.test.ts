import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions, isNewer, isVersion, newestFor } from './version.ts';

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

describe('compareVersions', () => {
  it('versions sort in the order of Semantic Versioning', () => {
    expect(ordered.toReversed().toSorted(compareVersions)).toEqual(ordered);
  });

  it('the order is symmetric, and no version is newer than itself', () => {
    const any = fc.constantFrom(...ordered);
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(Math.sign(compareVersions(a, b))).toBe(Math.sign(ordered.indexOf(a) - ordered.indexOf(b)));
        expect(isNewer(a, b) && isNewer(b, a)).toBe(false);
      }),
    );
  });

  it('build metadata does not affect the order', () => {
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
])('the text %j is a version: %s', (text, is) => expect(isVersion(text)).toBe(is));

describe('newestFor', () => {
  const here = ['0.5.0-beta.1', '0.1.0', '0.3.0', '0.2.0-rc.1'];

  it('the default target is the newest stable version', () => {
    expect(newestFor('0.1.0', here)).toBe('0.3.0');
    expect(newestFor(null, here)).toBe('0.3.0');
    expect(newestFor('0.1.0', [])).toBeUndefined();
  });

  it('the default target is the newest version of all from a pre-release, or if only pre-releases exist', () => {
    expect(newestFor('0.2.0-rc.1', here)).toBe('0.5.0-beta.1');
    expect(newestFor('0.1.0', ['0.5.0-beta.1', '0.5.0-beta.2'])).toBe('0.5.0-beta.2');
  });

  it('the default target among builds of one version does not depend on their order', () => {
    for (const builds of [
      ['1.0.0+a', '1.0.0+b'],
      ['1.0.0+b', '1.0.0+a'],
    ])
      expect(newestFor(null, builds)).toBe('1.0.0+b');
  });
});
