import { performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { Bell } from './bell.ts';
import { type ClockStep, DisciplinedTime, formatStep, systemTime } from './time.ts';

/** Tells the clock that it is `serverMs` now, exactly. */
function say(time: DisciplinedTime, serverMs: number): void {
  const at = performance.now();
  time.correct(serverMs, at, at);
}

describe('a disciplined clock', () => {
  it('is not known before a measurement, and shows the server’s time after it', () => {
    const time = new DisciplinedTime();
    expect(time.known).toBe(false);
    const server = Date.UTC(2040, 0, 1);
    say(time, server);
    expect(time.known).toBe(true);
    expect(time.now() - server).toBeGreaterThanOrEqual(0);
    expect(time.now() - server).toBeLessThan(1_000);
  });

  it('takes the middle of the round trip as the moment the server spoke', () => {
    const time = new DisciplinedTime();
    const at = performance.now();
    time.correct(5_000_000_000_000, at - 60_000, at + 60_000);
    const ahead = time.now() - 5_000_000_000_000;
    expect(ahead).toBeGreaterThanOrEqual(-1);
    expect(ahead).toBeLessThan(30_000);
  });

  it('never runs backwards: a measurement that says earlier holds it still', () => {
    const time = new DisciplinedTime();
    say(time, 5_000_000_000_000);
    const before = time.now();
    say(time, 4_999_999_999_000);
    expect(time.now()).toBe(before);
    say(time, 5_000_000_060_000);
    expect(time.now()).toBeGreaterThanOrEqual(5_000_000_060_000);
  });

  it('reports that the server’s clock was set back, and for how long it stands still because of it', () => {
    const steps: ClockStep[] = [];
    const time = new DisciplinedTime((step) => steps.push(step));
    say(time, 5_000_000_000_000);
    time.now();
    expect([time.step, time.heldMs]).toEqual([undefined, 0]);
    say(time, 5_000_000_000_000 - 3_600_000);
    expect(steps).toHaveLength(1);
    expect(Math.round((steps[0]?.byMs ?? 0) / 1_000)).toBe(-3_600);
    expect(Math.round(time.heldMs / 60_000)).toBe(60);
    expect(formatStep(steps[0] ?? { byMs: 0, at: new Date() }, time.heldMs)).toMatch(
      /^the database server's clock was set back by 3600 s at 2128-.*: nothing fires until it has caught up, in 3(600|59\d) s$/,
    );
    say(time, 5_000_000_000_500);
    expect(time.heldMs).toBe(0);
    expect(formatStep(time.step ?? { byMs: 0, at: new Date() }, 0)).toMatch(/set forward by 3600 s at \S+Z$/);
  });

  it('takes a drift, or an answer that was long under way, for no step', () => {
    const steps: ClockStep[] = [];
    const time = new DisciplinedTime((step) => steps.push(step));
    say(time, 5_000_000_000_000);
    say(time, 5_000_000_000_900);
    const at = performance.now();
    time.correct(5_000_000_003_000, at - 8_000, at);
    expect(steps).toEqual([]);
  });

  it('stands still without stopping those who only wait for a while', async () => {
    const time = new DisciplinedTime();
    say(time, 5_000_000_000_000);
    const held = time.now();
    say(time, 5_000_000_000_000 - 3_600_000);
    expect(await new Bell(time).wait(20, new AbortController().signal)).toBe(false);
    expect(time.now()).toBe(held);
  });

  it('starts from the first measurement, though this machine’s clock was far ahead before it', () => {
    const time = new DisciplinedTime();
    time.now();
    const server = Date.now() - 3_600_000;
    say(time, server);
    expect(time.now() - server).toBeLessThan(1_000);
  });

  it('wakes a sleeper that a correction has made late', async () => {
    const time = new DisciplinedTime();
    say(time, 5_000_000_000_000);
    await time.until(5_000_000_000_030);
    expect(time.now()).toBeGreaterThanOrEqual(5_000_000_000_030);
  });
});

describe('waiting for a time', () => {
  it('returns at once when it has passed or the signal has aborted', async () => {
    await systemTime.until(Date.now() - 1);
    await systemTime.until(Date.now() + 1e9, AbortSignal.abort());
  });

  it('returns early when the signal aborts', async () => {
    const stop = new AbortController();
    const waiting = systemTime.until(Number.POSITIVE_INFINITY, stop.signal);
    stop.abort();
    await waiting;
  });

  it('is never over too early', async () => {
    const at = Date.now() + 25;
    await systemTime.until(at);
    expect(Date.now()).toBeGreaterThanOrEqual(at);
  });
});
