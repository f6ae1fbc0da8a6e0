import { expect, it } from 'vitest';
import { makeSerial } from './serial.ts';

it('a piece of work begins once the piece before it is over, even if that failed', async () => {
  const notes: string[] = [];
  const inTurn = makeSerial();
  let end = (): void => {};
  const first = inTurn(async () => {
    notes.push('first begins');
    await new Promise<void>((resolve) => (end = resolve));
    notes.push('first fails');
    throw new Error('broken');
  });
  const second = inTurn(async () => {
    notes.push('second');
    return 2;
  });
  await new Promise(setImmediate);
  expect(notes).toEqual(['first begins']);
  end();
  await expect(first).rejects.toThrow('broken');
  expect(await second).toBe(2);
  expect(notes).toEqual(['first begins', 'first fails', 'second']);
});
