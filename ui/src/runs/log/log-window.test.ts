import { expect, test } from 'vitest';
import {
  endOf,
  evenRows,
  isAtEnd,
  placeAt,
  placeOfRow,
  scrolled,
  stretchPx,
  tallestPx,
  wrappedRows,
} from './log-window.ts';

const small = { rows: 1_000, rowPx: 18, windowPx: 540 };
const huge = { rows: 10_000_000, rowPx: 18, windowPx: 540 };

test('a log that browsers can draw is scrolled as it is', () => {
  const place = scrolled(small, { top: 0, scrollTop: 0 }, 9_000);
  expect(place).toEqual({ top: 9_000, scrollTop: 9_000 });
  expect(evenRows(small, place)).toEqual({ from: 477, to: 553, atPx: 477 * 18 });
  expect(endOf(small).top).toBe(17_460);
});

test('one that is too tall for them is scrolled by proportion afar and by the pixel near', () => {
  expect(stretchPx(huge)).toBe(tallestPx);
  const middle = scrolled(huge, { top: 0, scrollTop: 0 }, (tallestPx - 540) / 2);
  expect(evenRows(huge, middle).from).toBeCloseTo(5_000_000, -2);
  const below = scrolled(huge, middle, middle.scrollTop + 100);
  expect(below.top - middle.top).toBeCloseTo(100);
  const [before, after] = [evenRows(huge, middle), evenRows(huge, below)];
  // the same row, seen from the window's edge, has moved up by as much
  expect(before.atPx - middle.scrollTop - (after.atPx - below.scrollTop) + (after.from - before.from) * 18).toBeCloseTo(
    100,
  );
  const end = scrolled(huge, below, tallestPx - 540);
  expect(isAtEnd(huge, end)).toBe(true);
  expect(evenRows(huge, end).to).toBe(10_000_000);
  expect(placeAt(huge, end.top)).toEqual(end);
});

test('a row one goes to is in sight', () => {
  for (const row of [0, 1, 5_000_000, 9_999_999]) {
    const place = placeOfRow(huge, row, false);
    expect(row * 18).toBeGreaterThanOrEqual(place.top);
    expect(row * 18 + 18).toBeLessThanOrEqual(place.top + 540);
  }
});

test('where lines wrap the first row begins at the top and the last ends at the bottom', () => {
  expect(wrappedRows(small, { top: 0, scrollTop: 0 }, 18)).toMatchObject({
    from: 0,
    anchor: 0,
    partOfRow: 0,
    partOfWindow: 0,
  });
  expect(wrappedRows(small, endOf(small), 18)).toMatchObject({ to: 1_000, anchor: 999, partOfRow: 1, partOfWindow: 1 });
  expect(wrappedRows(small, placeOfRow(small, 700, true), 18)).toMatchObject({ anchor: 700 });
  expect(wrappedRows({ ...small, rows: 0 }, { top: 0, scrollTop: 0 }, 18)).toMatchObject({ from: 0, to: 0 });
});
