import { performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { Bell } from './bell.ts';
import { type ClockStep, DisciplinedTime, formatStep, systemTime } from './time.ts';

/** Corrects the clock with an exact measurement: it is `serverMs` now. */
function setServerTime(time: DisciplinedTime, serverMs: number): void {
  const at = performance.now();
  time.correct(serverMs, at, at);
}

describe('DisciplinedTime', () => {
  it('the clock is unknown before the first measurement, and shows the server’s time after it', () => {
    const time = new DisciplinedTime();
    expect(time.known).toBe(false);
    const server = Date.UTC(2040, 0, 1);
    setServerTime(time, server);
    expect(time.known).toBe(true);
    expect(time.now() - server).toBeGreaterThanOrEqual(0);
    expect(time.now() - server).toBeLessThan(1_000);
  });

  it('the clock takes the middle of the round trip as the moment of the measurement', () => {
    const time = new DisciplinedTime();
    const at = performance.now();
    time.correct(5_000_000_000_000, at - 60_000, at + 60_000);
    const ahead = time.now() - 5_000_000_000_000;
    expect(ahead).toBeGreaterThanOrEqual(-1);
    expect(ahead).toBeLessThan(30_000);
  });

  it('the clock never runs backwards: an earlier server time holds it still', () => {
    const time = new DisciplinedTime();
    setServerTime(time, 5_000_000_000_000);
    const before = time.now();
    setServerTime(time, 4_999_999_999_000);
    expect(time.now()).toBe(before);
    setServerTime(time, 5_000_000_060_000);
    expect(time.now()).toBeGreaterThanOrEqual(5_000_000_060_000);
  });

  it('the clock reports that the server’s clock was set back, and how long it is held', () => {
    const steps: ClockStep[] = [];
    const time = new DisciplinedTime((step) => steps.push(step));
    setServerTime(time, 5_000_000_000_000);
    time.now();
    expect([time.step, time.heldMs]).toEqual([undefined, 0]);
    setServerTime(time, 5_000_000_000_000 - 3_600_000);
    expect(steps).toHaveLength(1);
    expect(Math.round((steps[0]?.byMs ?? 0) / 1_000)).toBe(-3_600);
    expect(Math.round(time.heldMs / 60_000)).toBe(60);
    expect(formatStep(steps[0] ?? { byMs: 0, at: new Date() }, time.heldMs)).toMatch(
      /^the database server's clock was set back by 3600 s at 2128-.*: nothing fires until it has caught up, in 3(600|59\d) s$/,
    );
    setServerTime(time, 5_000_000_000_500);
    expect(time.heldMs).toBe(0);
    expect(formatStep(time.step ?? { byMs: 0, at: new Date() }, 0)).toMatch(/set forward by 3600 s at \S+Z$/);
  });

  it('a drift or a slow answer is not reported as a step', () => {
    const steps: ClockStep[] = [];
    const time = new DisciplinedTime((step) => steps.push(step));
    setServerTime(time, 5_000_000_000_000);
    setServerTime(time, 5_000_000_000_900);
    const at = performance.now();
    time.correct(5_000_000_003_000, at - 8_000, at);
    expect(steps).toEqual([]);
  });

  it('a held clock does not delay sleeps', async () => {
    const time = new DisciplinedTime();
    setServerTime(time, 5_000_000_000_000);
    const held = time.now();
    setServerTime(time, 5_000_000_000_000 - 3_600_000);
    expect(await new Bell(time).wait(20, new AbortController().signal)).toBe(false);
    expect(time.now()).toBe(held);
  });

  it('the clock starts from the first measurement, even if this machine’s clock was far ahead', () => {
    const time = new DisciplinedTime();
    time.now();
    const server = Date.now() - 3_600_000;
    setServerTime(time, server);
    expect(time.now() - server).toBeLessThan(1_000);
  });

  it('a correction wakes a sleeper whose time has passed', async () => {
    const time = new DisciplinedTime();
    setServerTime(time, 5_000_000_000_000);
    await time.until(5_000_000_000_030);
    expect(time.now()).toBeGreaterThanOrEqual(5_000_000_000_030);
  });
});

describe('systemTime.until', () => {
  it('a wait returns at once if the time has passed or the signal has aborted', async () => {
    await systemTime.until(Date.now() - 1);
    await systemTime.until(Date.now() + 1e9, AbortSignal.abort());
  });

  it('a wait returns early when the signal aborts', async () => {
    const stop = new AbortController();
    const waiting = systemTime.until(Number.POSITIVE_INFINITY, stop.signal);
    stop.abort();
    await waiting;
  });

  it('a wait never ends too early', async () => {
    const at = Date.now() + 25;
    await systemTime.until(at);
    expect(Date.now()).toBeGreaterThanOrEqual(at);
  });
});
