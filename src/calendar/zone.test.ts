import { describe, expect, it, test } from 'vitest';
import { firstShown, isZone, zoneOf } from './zone.ts';
import { formatLocal } from './zone-text.ts';

const names = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Casablanca', 'Asia/Kolkata'];

/** The wall time that Intl formats. */
function wallFromIntl(name: string, instantMs: number): number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: name, dateStyle: 'short', timeStyle: 'medium' });
  return Date.parse(`${format.format(instantMs).replace(' ', 'T')}Z`);
}

describe('zones', () => {
  it.each(names)('the zone %s gives the same wall times as Intl, up to the year 9998', (name) => {
    const zone = zoneOf(name);
    for (const year of [1970, 1999, 2026, 2099, 2128, 2129, 2132, 2200, 2400, 3001, 9998]) {
      for (let day = 0; day < 365; day += 5) {
        const instantMs = Date.UTC(year, 0, 1, 1, 30) + day * 86_400_000;
        const { fromMs, toMs, offsetMs } = zone.stretchAt(instantMs);
        expect(instantMs + offsetMs, `${name} ${new Date(instantMs).toISOString()}`).toBe(
          wallFromIntl(name, instantMs),
        );
        expect(fromMs <= instantMs && instantMs < toMs).toBe(true);
      }
    }
  });

  it('names that differ only in case give the same zone', () => {
    expect(zoneOf('europe/BERLIN')).toBe(zoneOf('Europe/Berlin'));
    expect(zoneOf(null).stretchAt(0).offsetMs).toBe(0);
  });

  it('firstShown gives the first pass of an overlap, and the jump for a skipped time', () => {
    const berlin = zoneOf('Europe/Berlin');
    const first = (wall: string): string => new Date(firstShown(berlin, Date.parse(wall))).toISOString();
    expect(first('2024-10-27T02:30:00Z')).toBe('2024-10-27T00:30:00.000Z');
    expect(first('2024-03-31T02:30:00Z')).toBe('2024-03-31T01:00:00.000Z');
    expect(first('2024-06-01T00:00:00Z')).toBe('2024-05-31T22:00:00.000Z');
  });
});

test.each<[string, boolean]>([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['Etc/GMT+5', true],
  ['+02:00', false],
  ['Europe/Atlantis', false],
  ['', false],
  ['x'.repeat(80), false],
])('the name %j is a zone: %j', (name, known) => {
  expect(isZone(name)).toBe(known);
});

test.each<[string | null, string, string]>([
  ['Europe/Berlin', '2026-03-29T01:00:00Z', '2026-03-29T03:00:00+02:00[Europe/Berlin]'],
  ['America/Caracas', '2010-01-01T00:00:00.250Z', '2009-12-31T19:30:00.250-04:30[America/Caracas]'],
  ['Africa/Monrovia', '1970-06-01T00:00:00Z', '1970-05-31T23:15:30-00:44:30[Africa/Monrovia]'],
  [null, '2026-03-29T01:00:00Z', '2026-03-29T01:00:00+00:00[UTC]'],
])('in %j the instant %s is formatted as %s', (zone, instant, text) => {
  expect(formatLocal(zone, Date.parse(instant))).toBe(text);
});
