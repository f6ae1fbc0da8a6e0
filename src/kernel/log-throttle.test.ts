import { expect, it } from 'vitest';
import { LogThrottle } from './log-throttle.ts';

it('a problem is logged when it begins, when it changes, and then once a minute', () => {
  let now = 0;
  const throttle = new LogThrottle({ clock: () => now });
  const at = (ms: number, subject: string, problem: unknown): boolean => {
    now = ms;
    return throttle.isDue(subject, problem);
  };
  expect(at(0, 'beating', new Error('no answer'))).toBe(true);
  expect(at(1_000, 'beating', new Error('no answer'))).toBe(false);
  expect(at(1_000, 'reporting', new Error('no answer'))).toBe(true);
  expect(at(2_000, 'beating', new Error('refused'))).toBe(true);
  expect(at(61_999, 'beating', 'refused')).toBe(false);
  expect(at(62_000, 'beating', 'refused')).toBe(true);
});

it('a problem that was over is logged at once when it returns', () => {
  const throttle = new LogThrottle({ clock: () => 0, everyMs: 5 });
  expect(throttle.clear('beating')).toBe(false);
  expect([throttle.isDue('beating', 'x'), throttle.isDue('beating', 'x')]).toEqual([true, false]);
  expect(throttle.clear('beating')).toBe(true);
  expect(throttle.isDue('beating', 'x')).toBe(true);
});
