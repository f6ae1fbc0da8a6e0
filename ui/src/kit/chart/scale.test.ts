import { expect, test } from 'vitest';
import { niceScale } from './scale.ts';

test('an axis has few round ticks and covers the data', () => {
  expect(niceScale(0)).toEqual({ top: 1, ticks: [0, 1] });
  expect(niceScale(7)).toEqual({ top: 10, ticks: [0, 5, 10] });
  expect(niceScale(300)).toEqual({ top: 300, ticks: [0, 100, 200, 300] });
  for (const most of [0.003, 1, 13, 999, 12_345]) {
    const { top, ticks } = niceScale(most);
    expect(top).toBeGreaterThanOrEqual(most);
    expect(ticks.length).toBeLessThanOrEqual(5);
  }
});
