import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OutboundAnswer } from '../../contract/bus.ts';
import { shortestPauseMs } from './health.ts';
import { type Attempt, judge, retryPauseMs, type Verdict, verdictLimits } from './verdict.ts';

const now = 1_000_000_000;
const hourMs = 3_600_000;

function attempt(answer: Partial<OutboundAnswer & { status: number }>, more: Partial<Attempt> = {}): Attempt {
  return {
    answer: { retryAfterMs: null, excerpt: '', ms: 1, ...answer } as OutboundAnswer,
    events: 1,
    firstEventAtMs: now - 1_000,
    attempts: 0,
    failures: 0,
    firstFailedAtMs: null,
    health: 100,
    maxAttempts: null,
    maxAgeMs: 72 * hourMs,
    lastDeliveredAtMs: null,
    ...more,
  };
}
const timeout = attempt({}, { answer: { code: 'timeout', detail: 'no answer within 20 s', ms: 20_000 } });

describe('the verdict', () => {
  it.each<[string, Attempt, Partial<Verdict>]>([
    ['200', attempt({ status: 200 }), { kind: 'done' }],
    ['299', attempt({ status: 299 }), { kind: 'done' }],
    ['199', attempt({ status: 199 }), { kind: 'retry', runAtMs: now + 500 }],
    ['a redirect', attempt({ status: 302 }), { kind: 'retry', runAtMs: now + 500 }],
    ['410', attempt({ status: 410 }), { kind: 'disable' }],
    ['410 beyond all attempts', attempt({ status: 410 }, { maxAttempts: 1 }), { kind: 'disable' }],
    ['413 to several events', attempt({ status: 413 }, { events: 2 }), { kind: 'halve' }],
    ['400 to several events', attempt({ status: 400 }, { events: 9 }), { kind: 'halve' }],
    ['422 to one event', attempt({ status: 422 }), { kind: 'tryNext', runAtMs: now + 500 }],
    [
      '422 to one event a minute after a success',
      attempt({ status: 422 }, { lastDeliveredAtMs: now - 60_000 }),
      { kind: 'giveUp', code: 'refused', runAtMs: null },
    ],
    [
      '422 to one event longer after a success',
      attempt({ status: 422 }, { lastDeliveredAtMs: now - 60_001 }),
      { kind: 'tryNext' },
    ],
    ['404 to several events', attempt({ status: 404 }, { events: 2 }), { kind: 'retry' }],
    ['429 with a time', attempt({ status: 429, retryAfterMs: 7_000 }), { kind: 'retry', runAtMs: now + 7_000 }],
    ['503 with a day', attempt({ status: 503, retryAfterMs: 24 * hourMs }), { kind: 'retry', runAtMs: now + hourMs }],
    ['503 without a time', attempt({ status: 503 }), { kind: 'retry', runAtMs: now + 500 }],
    ['500 with a time', attempt({ status: 500, retryAfterMs: 7_000 }), { kind: 'retry', runAtMs: now + 500 }],
    ['a timeout', timeout, { kind: 'retry', reason: 'timeout: no answer within 20 s' }],
    [
      'the last attempt',
      attempt({ status: 500 }, { attempts: 4, maxAttempts: 5 }),
      { kind: 'giveUp', code: 'max_attempts', runAtMs: now + 500 },
    ],
    ['the last but one', attempt({ status: 500 }, { attempts: 3, maxAttempts: 5 }), { kind: 'retry' }],
    [
      'failures for the longest age',
      attempt({ status: 500 }, { firstEventAtMs: 0, firstFailedAtMs: now - hourMs, maxAgeMs: hourMs }),
      { kind: 'giveUp', code: 'max_age' },
    ],
    [
      'the first failure of old events',
      attempt({ status: 500 }, { firstEventAtMs: 0, maxAgeMs: hourMs }),
      { kind: 'retry' },
    ],
    [
      'new events after failures for long',
      attempt({ status: 500 }, { firstEventAtMs: now - 1, firstFailedAtMs: 0, maxAgeMs: hourMs }),
      { kind: 'retry' },
    ],
  ])('of %s is as documented', (_, given, verdict) => {
    expect(judge(given, now, () => 0)).toMatchObject(verdict);
  });

  it('never lets a batch be tried again in the past, nor later than an hour', () => {
    const arbitrary = fc.record({
      status: fc.integer({ min: 100, max: 599 }),
      retryAfterMs: fc.option(fc.integer({ min: -hourMs, max: 48 * hourMs })),
      events: fc.integer({ min: 1, max: 100 }),
      attempts: fc.nat(1_000),
      failures: fc.nat(1_000),
      health: fc.integer({ min: 0, max: 100 }),
      firstFailedAtMs: fc.option(fc.integer({ min: 0, max: now })),
    });
    fc.assert(
      fc.property(
        arbitrary,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        ({ status, retryAfterMs, ...more }, random) => {
          const verdict = judge(attempt({ status, retryAfterMs }, more), now, () => random);
          expect(verdict.kind === 'done').toBe(status >= 200 && status < 300);
          if (!('runAtMs' in verdict) || verdict.runAtMs === null) return;
          expect(verdict.runAtMs).toBeGreaterThanOrEqual(now);
          expect(verdict.runAtMs).toBeLessThanOrEqual(now + hourMs);
        },
      ),
    );
  });
});

describe('the pause before a retry', () => {
  const pause = (failures: number, more: Partial<Attempt> = {}, random = 0): number =>
    retryPauseMs({ failures, firstFailedAtMs: 0, health: 100, ...more }, now, () => random);

  it('doubles from half a second to a minute', () => {
    expect([0, 1, 2, 6, 7, 1_000].map((failures) => pause(failures))).toEqual([
      500, 1_000, 2_000, 32_000, 60_000, 60_000,
    ]);
  });

  it('is at most 5 s in the first minute of failing', () => {
    expect([3, 4, 10].map((failures) => pause(failures, { firstFailedAtMs: now - 59_999 }))).toEqual([
      4_000, 5_000, 5_000,
    ]);
    expect(pause(10, { firstFailedAtMs: now - verdictLimits.earlyMs })).toBe(60_000);
  });

  it('loses up to half of itself by chance, and never falls below the pause of the health', () => {
    fc.assert(
      fc.property(
        fc.nat(30),
        fc.integer({ min: 0, max: 100 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (failures, health, random) => {
          const full = pause(failures);
          const chosen = pause(failures, { health }, random);
          expect(chosen).toBeGreaterThanOrEqual(Math.max(full / 2, shortestPauseMs(health)));
          expect(chosen).toBeLessThanOrEqual(Math.max(full, shortestPauseMs(health)));
        },
      ),
    );
  });

  it.each([
    [0, 60_000],
    [1, 30_000],
    [10, 59],
    [17, 0],
    [100, 0],
  ])('is at health %i at least %i ms', (health, ms) => {
    expect(shortestPauseMs(health)).toBe(ms);
  });
});
