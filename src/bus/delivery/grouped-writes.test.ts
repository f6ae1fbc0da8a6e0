import { expect, it } from 'vitest';
import { systemTime } from '../../kernel/time.ts';
import { GroupedWrites } from './grouped-writes.ts';

function setUp(restMs: number) {
  const written: (readonly number[])[] = [];
  const writes = new GroupedWrites<number, number>({
    write: async (items) => {
      written.push(items);
      return items.map((item) => -item);
    },
    signal: new AbortController().signal,
    time: systemTime,
    restMs,
    onRetry: () => {},
  });
  return { writes, written };
}

const never = 3_600_000;

it('the first item is written at once, and those during the rest once somebody waits for them', async () => {
  const { writes, written } = setUp(never);
  expect(await writes.add(1)).toBe(-1);
  const others = [writes.add(2), writes.add(3)];
  expect(written).toEqual([[1]]);
  writes.hurry();
  expect(await Promise.all(others)).toEqual([-2, -3]);
  expect(written).toEqual([[1], [2, 3]]);
});

it('a flush does not wait for the rest', async () => {
  const { writes, written } = setUp(never);
  await writes.add(1);
  void writes.add(2);
  await writes.flush();
  expect(written).toEqual([[1], [2]]);
});

it('items are written after the rest without anybody waiting', async () => {
  const { writes, written } = setUp(1);
  expect(await Promise.all([writes.add(1), writes.add(2)])).toEqual([-1, -2]);
  expect(await writes.add(3)).toBe(-3);
  expect(written).toEqual([[1, 2], [3]]);
});
