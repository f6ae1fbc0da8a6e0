import { expect, it } from 'vitest';
import { instantsOnPage } from './page-size.ts';

it('a page has the requested instants, fewer if there are many tasks, and at least one', () => {
  expect(instantsOnPage(200, 3)).toBe(200);
  expect(instantsOnPage(1_000, 100)).toBe(200);
  expect(instantsOnPage(1_000, 10_000)).toBe(2);
  expect(instantsOnPage(1_000, 1_000_000)).toBe(1);
  expect(instantsOnPage(1_000, 0)).toBe(1_000);
});
