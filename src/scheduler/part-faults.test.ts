import { afterEach, expect, it, vi } from 'vitest';
import { HandTime } from '../../test/harness/hand-time.ts';
import { PartFaults } from './part-faults.ts';

const firing = { doing: 'firing triggers', isVital: true };
const pruning = { doing: 'forgetting old runs', isVital: false };
const noon = '2026-06-01T12:00:00Z';

afterEach(() => void vi.restoreAllMocks());

/** Both clocks, or one of them. */
function makeClocks() {
  const time = new HandTime(noon);
  let ownMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => ownMs);
  return {
    time,
    pass: (ms: number) => {
      time.advance(ms);
      ownMs += ms;
    },
  };
}

const fail = (message: string) => async (): Promise<never> => {
  throw new Error(message);
};

it('A part that fails every time has failed since the first time', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await expect(faults.attempt(firing, fail('no such function'))).rejects.toThrow('no such function');
  for (let i = 0; i < 4; i++) {
    pass(5_000);
    await expect(faults.attempt(firing, fail('permission denied'))).rejects.toThrow();
  }
  expect(faults.current()).toEqual([
    { ...firing, since: new Date(noon), failingMs: 20_000, message: 'permission denied' },
  ]);
});

it('A part that succeeds once has no fault', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await faults.attempt(firing, fail('a deadlock')).catch(() => {});
  pass(5_000);
  expect(await faults.attempt(firing, async () => 7)).toBe(7);
  expect(faults.current()).toEqual([]);
});

it('A vital part that has not failed for longer than its next attempt takes is well; a tidying one need not be', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await faults.attempt(firing, fail('x')).catch(() => {});
  await faults.attempt(pruning, fail('x')).catch(() => {});
  pass(60_000);
  expect(faults.current().map(({ doing }) => doing)).toEqual(['forgetting old runs']);
  await faults.attempt(firing, fail('y')).catch(() => {});
  expect(faults.current().find(({ isVital }) => isVital)).toMatchObject({ failingMs: 0, message: 'y' });
});

it('A clock that is set forward makes no fault older', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await faults.attempt(firing, fail('x')).catch(() => {});
  pass(1_000);
  time.advance(3_600_000);
  await faults.attempt(firing, fail('x')).catch(() => {});
  expect(faults.current()).toMatchObject([{ failingMs: 1_000 }]);
});

it('An error that passes through two attempts is a fault of the inner part', async () => {
  const faults = new PartFaults(makeClocks().time);
  const inner = () => faults.attempt(firing, fail('x'));
  await faults.attempt({ doing: 'reading triggers', isVital: true }, inner).catch(() => {});
  expect(faults.current().map(({ doing }) => doing)).toEqual(['firing triggers']);
});
