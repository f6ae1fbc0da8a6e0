import { expect, it } from 'vitest';
import { Seldom } from './log-throttle.ts';

it('what goes on is told when it begins or becomes another, and then once a minute', () => {
  let now = 0;
  const seldom = new Seldom(() => now);
  const at = (ms: number, about: string, what: unknown): boolean => {
    now = ms;
    return seldom.isDue(about, what);
  };
  expect(at(0, 'beating', new Error('no answer'))).toBe(true);
  expect(at(1_000, 'beating', new Error('no answer'))).toBe(false);
  expect(at(1_000, 'telling', new Error('no answer'))).toBe(true);
  expect(at(2_000, 'beating', new Error('refused'))).toBe(true);
  expect(at(61_999, 'beating', 'refused')).toBe(false);
  expect(at(62_000, 'beating', 'refused')).toBe(true);
});
