import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { HandTime } from '../../test/harness/hand-time.ts';
import { Pulse } from './pulse.ts';

it('names a part that has not come round, and no other', async () => {
  const time = new HandTime(0);
  const pulse = new Pulse(time, 10);
  pulse.beat('slow', 10_000);
  pulse.beat('quick', 5);
  await sleep(20);
  time.advance(20);
  expect(pulse.stuck()).toMatchObject([{ part: 'quick' }]);
  pulse.beat('quick', 5);
  expect(pulse.stuck()).toEqual([]);
});

it('takes nobody for stuck whose clock was turned forward, or stands still', async () => {
  const time = new HandTime(0);
  // of our own clock less than that passes
  const pulse = new Pulse(time, 60_000);
  pulse.beat('part', 5);
  time.advance(3_600_000);
  expect(pulse.stuck()).toEqual([]);
  const strict = new Pulse(time, 10);
  strict.beat('part', 5);
  await sleep(30);
  expect(strict.stuck()).toEqual([]);
});
