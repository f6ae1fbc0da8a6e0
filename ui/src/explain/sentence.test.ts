import { expect, test } from 'vitest';
import { sentence } from './sentence.ts';

test('a clause becomes a sentence, and names keep their case', () => {
  expect(sentence('no worker serves it')).toBe('No worker serves it.');
  expect(sentence('queued: it is due')).toBe('Queued: it is due.');
  expect(sentence('shop/nightly/task/load has not run')).toBe('shop/nightly/task/load has not run.');
  expect(sentence('key:root ran the job.')).toBe('key:root ran the job.');
  expect(sentence('it waits', false)).toBe('it waits.');
});
