import { expect, it } from 'vitest';
import { sharedMb } from './launch.ts';

it.each([
  { gb: 0.5, mb: 128 },
  { gb: 4, mb: 128 },
  { gb: 8, mb: 256 },
  { gb: 24, mb: 768 },
  { gb: 256, mb: 1_024 },
])('of $gb GB the server shares $mb MB', ({ gb, mb }) => {
  expect(sharedMb(gb * 2 ** 30)).toBe(mb);
});
