import { afterEach, expect, it, vi } from 'vitest';
import { HandTime } from '../../test/harness/hand-time.ts';
import { type Part, PartFaults, type Progress } from './part-faults.ts';

const firing = { doing: 'firing triggers', isVital: true };
const pruning = { doing: 'forgetting old runs', isVital: false };
const noon = '2026-06-01T12:00:00Z';

afterEach(() => void vi.restoreAllMocks());

/** Controls the database's clock (`time`) and this machine's clock; `pass` moves both. */
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

/** An attempt that lasts until `end` is called. */
function hang(faults: PartFaults, part: Part): { progress: Progress; end(): Promise<void> } {
  let end = (): void => {};
  let progress: Progress = () => {};
  const done = faults.attempt(part, (note) => {
    progress = note;
    return new Promise<void>((resolve) => (end = resolve));
  });
  return {
    progress: () => progress(),
    end: () => {
      end();
      return done;
    },
  };
}

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

it('A part that failed once and is not tried again does not grow older', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await faults.attempt(firing, fail('x')).catch(() => {});
  pass(60_000);
  expect(faults.current()).toMatchObject([{ failingMs: 0, message: 'x' }]);
  faults.clear(firing);
  expect(faults.current()).toEqual([]);
});

it('A part whose failures are far apart has failed since the first attempt began', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  const timeOut = async (): Promise<never> => {
    pass(16_000);
    throw new Error('canceling statement due to lock timeout');
  };
  await faults.attempt(firing, timeOut).catch(() => {});
  expect(faults.current()).toMatchObject([{ since: new Date(noon), failingMs: 16_000 }]);
  await faults.attempt(firing, timeOut).catch(() => {});
  expect(faults.current()).toMatchObject([{ since: new Date(noon), failingMs: 32_000 }]);
});

it('A part whose attempt goes on for 3 s without progress has a fault until the attempt ends', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  const attempt = hang(faults, firing);
  pass(2_999);
  expect(faults.current()).toEqual([]);
  pass(17_001);
  const duration = { failingMs: 20_000, underWayMs: 20_000 };
  expect(faults.current()).toEqual([{ ...firing, since: new Date(noon), ...duration, message: null }]);
  await attempt.end();
  expect(faults.current()).toEqual([]);
});

it('A part that hangs after it has failed has not worked since the first failure', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await faults.attempt(firing, fail('x')).catch(() => {});
  pass(10_000);
  const attempt = hang(faults, firing);
  pass(10_000);
  expect(faults.current()).toMatchObject([{ failingMs: 20_000, underWayMs: 10_000, message: 'x' }]);
  await attempt.end();
  expect(faults.current()).toEqual([]);
});

it('An attempt that makes progress does not hang', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  await faults.attempt(firing, fail('x')).catch(() => {});
  const attempt = hang(faults, firing);
  for (let i = 0; i < 10; i++) {
    pass(2_900);
    expect(faults.current()).toMatchObject([{ failingMs: 0 }]);
    attempt.progress();
  }
  pass(20_000);
  expect(faults.current()).toMatchObject([{ failingMs: 20_000, underWayMs: 20_000 }]);
  await attempt.end();
});

it('Of two concurrent attempts, the one that hangs is reported', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  const attempt = hang(faults, firing);
  pass(5_000);
  await faults.attempt(firing, async () => {});
  expect(faults.current()).toMatchObject([{ underWayMs: 5_000 }]);
  await attempt.end();
});

it('An attempt of a part that is not vital may take ten minutes', async () => {
  const { time, pass } = makeClocks();
  const faults = new PartFaults(time);
  const attempt = hang(faults, pruning);
  pass(600_000);
  expect(faults.current()).toEqual([]);
  pass(60_000);
  expect(faults.current()).toMatchObject([{ doing: pruning.doing, underWayMs: 660_000 }]);
  await attempt.end();
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
