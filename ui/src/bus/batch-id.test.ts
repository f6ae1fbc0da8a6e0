import { expect, it } from 'vitest';
import { parseBatchId } from './batch-id.ts';

it('the id of a batch gives its strand and its first and last event', () => {
  expect(parseBatchId('1a2b3c4d_2_100_199')).toEqual({ strand: 2, first: 100, last: 199 });
});

it.each(['test_1', '1a2b3c4d_0_1', 'x_0_1_2', ''])('the id "%s" is not one of a batch of events', (id) => {
  expect(parseBatchId(id)).toBeUndefined();
});
