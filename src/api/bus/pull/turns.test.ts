import { expect, it } from 'vitest';
import { PullTurns } from './turns.ts';

const never = new AbortController().signal;

it('consumers of one subscriber take turns, those of another do not wait, and nothing is left of them', async () => {
  const turns = new PullTurns();
  const first = await turns.take('a', never);
  const other = await turns.take('b', never);
  const gone = new AbortController();
  const impatient = turns.take('a', gone.signal);
  let isSecond = false;
  const second = turns.take('a', never).then((permit) => {
    isSecond = true;
    return permit;
  });
  gone.abort();
  expect(await impatient).toBeUndefined();
  expect(isSecond).toBe(false);
  first?.release();
  (await second)?.release();
  expect(turns.size).toBe(1);
  other?.release();
  expect(turns.size).toBe(0);
});
