import { expect, test } from 'vitest';
import { fit, opening, reveal, zoom } from './view-box.ts';

const frame = { width: 1_000, height: 500 };

test('a drawing is fitted into the middle, and never enlarged', () => {
  expect(fit({ width: 100, height: 50 }, frame)).toEqual({ scale: 1, x: 450, y: 225 });
  const { scale, x, y } = fit({ width: 9_680, height: 100 }, frame);
  expect([scale, Math.round(x), Math.round(y)]).toEqual([0.1, 16, 245]);
});

test('on a phone a wide drawing opens at its beginning, large enough to be read', () => {
  expect(opening({ width: 3_000, height: 300 }, { width: 360, height: 400 })).toEqual({ scale: 0.6, x: 16, y: 110 });
  expect(opening({ width: 3_000, height: 300 }, frame)).toEqual(fit({ width: 3_000, height: 300 }, frame));
});

test('what lies under the pointer stays there when one zooms', () => {
  const before = { x: 10, y: 20, scale: 0.5 };
  const after = zoom(before, 2, { x: 110, y: 220 });
  const under = ({ x, y, scale }: typeof before) => [(110 - x) / scale, (220 - y) / scale];
  expect(after.scale).toBe(1);
  expect(under(after)).toEqual(under(before));
});

test('a box becomes visible, and a visible one stays in place', () => {
  const view = { x: 0, y: 0, scale: 1 };
  expect(reveal(view, { x: 100, y: 100, width: 50, height: 40 }, frame)).toBe(view);
  expect(reveal(view, { x: 1_000, y: 100, width: 50, height: 40 }, frame)).toEqual({ x: -66, y: 0, scale: 1 });
  expect(reveal(view, { x: -40, y: 480, width: 50, height: 40 }, frame)).toEqual({ x: 56, y: -36, scale: 1 });
});
