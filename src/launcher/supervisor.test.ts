import { describe, expect, it } from 'vitest';
import { because } from '../../test/harness/turns.ts';
import { reasonCodes, reasons } from '../control/reasons.ts';
import { afterQuit, afterRunning, care, type Circumstances, isLeft, isOtherwise, whenOtherwise } from './supervisor.ts';

const now = new Date('2026-06-01T00:00:00Z');
const after = (ms: number): Date => new Date(now.getTime() + ms);
const least = (): number => 1;
const most = (): number => 0;
const wait = (retryAt: Date): number => retryAt.getTime() - now.getTime();

describe('after a scheduler has quit', () => {
  it.each(['crashed', 'unreachable'] as const)('%s: it is tried again after a growing pause, at most 15 s', (code) => {
    const waits = [0, 1, 2, 3, 4, 30].map((failures) =>
      wait(afterQuit({ reason: because(code) }, failures, now, most).retryAt),
    );
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    expect(wait(afterQuit({ reason: because(code) }, 0, now, least).retryAt)).toBe(700);
    const { reason, failures, retryAt } = afterQuit({ reason: reasons.error(code, 'boom') }, 2, now, most);
    expect(failures).toBe(3);
    expect([reason, retryAt > now]).toEqual([reasons.error(code, 'boom'), true]);
  });

  it.each(['not_installed', 'no_engine', 'gone'] as const)(
    '%s: looked at again after a second, not all at once, and it is no failure',
    (code) => {
      const { reason, failures, retryAt } = afterQuit({ reason: because(code) }, 7, now, most);
      expect(reason).toEqual(because(code));
      expect(failures).toBe(0);
      expect([wait(retryAt), wait(afterQuit({ reason: because(code) }, 7, now, least).retryAt)]).toEqual([1_000, 700]);
    },
  );

  it('an engine that its host cannot use is a failure', () => {
    const quit = { reason: because('no_engine'), ofHost: true };
    expect(afterQuit(quit, 0, now, most)).toMatchObject({ failures: 1, retryAt: after(1_000) });
    expect(afterQuit(quit, 4, now, most)).toMatchObject({ failures: 5, retryAt: after(15_000) });
  });

  it('what stays missing is looked at ever more rarely; one of many databases without Millrace within half a minute', () => {
    const waits = (code: 'not_installed' | 'no_engine', among: number) =>
      [0, 5_000, 10_000, 30_000, 60_000, 3_600_000].map((forMs) =>
        wait(afterQuit({ reason: because(code), forMs, among }, 0, now, most).retryAt),
      );
    expect(waits('not_installed', 200)).toEqual([1_000, 4_000, 8_000, 15_000, 25_000, 25_000]);
    expect(waits('not_installed', 20)).toEqual([1_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
    expect(waits('no_engine', 200)).toEqual([1_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
  });

  it('a lost host is a failure of the tenant that is blamed; the others start again at once', () => {
    const waitsOf = (isBlamed: boolean) =>
      [0, 1, 2, 5].map((failures) => {
        const quit = { reason: because('crashed'), lost: { isBlamed } };
        const { retryAt, ...after } = afterQuit(quit, failures, now, most);
        return [wait(retryAt), after.failures - failures];
      });
    expect(waitsOf(false)).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    expect(waitsOf(true)).toEqual([
      [1_000, 1],
      [2_000, 1],
      [4_000, 1],
      [15_000, 1],
    ]);
  });

  it('what its host finds otherwise is looked at again, the first time at once', () => {
    expect(reasonCodes.filter(isLeft)).toEqual(['stopping']);
    expect(reasonCodes.filter(isOtherwise)).toEqual(['starting', 'waiting_on_transaction']);
    expect(whenOtherwise(0, now)).toBeNull();
    expect(whenOtherwise(1, now, most)).toEqual(after(1_000));
    expect(whenOtherwise(9, now, most)).toEqual(after(15_000));
  });

  it('forgives after a minute of running, and trusts again after ten', () => {
    const blame = { failures: 3, suspicion: 2 };
    expect(afterRunning(blame, 59_999)).toEqual(blame);
    expect(afterRunning(blame, 60_000)).toEqual({ failures: 0, suspicion: 2 });
    expect(afterRunning(blame, 600_000)).toEqual({ failures: 0, suspicion: 0 });
  });
});

describe('without anybody saying so', () => {
  const usual: Circumstances = {
    desired: 'on',
    presence: 'there',
    state: 'DISABLED',
    ending: false,
    reason: because('crashed'),
    retryAt: after(1),
  };
  const cases: [string, Partial<Circumstances>, ReturnType<typeof care>][] = [
    ['one that is wanted and unknown is registered', { state: undefined, reason: null }, { kind: 'register' }],
    [
      'one that is off and unknown is registered as stopped',
      { state: undefined, reason: null, desired: 'off' },
      { kind: 'stop', reason: reasons.stoppedByUser },
    ],
    ['a crash is waited out', {}, { kind: 'nothing' }],
    ['a crash is tried again', { retryAt: now }, { kind: 'start' }],
    ['the longest pause is waited out', { retryAt: after(60_000) }, { kind: 'nothing' }],
    ['a crash from before the clock was set back is tried again', { retryAt: after(60_001) }, { kind: 'start' }],
    ['nobody starts what is still ending', { ending: true, retryAt: now }, { kind: 'nothing' }],
    ['what runs is left alone', { state: 'STARTED', reason: null }, { kind: 'nothing' }],
    [
      'what is off is stopped, though nobody sent a message',
      { state: 'STARTED', reason: null, desired: 'off' },
      { kind: 'stop', reason: reasons.stoppedByUser },
    ],
    [
      'what is off and stopped is left alone',
      { reason: because('stopped_by_user'), desired: 'off' },
      { kind: 'nothing' },
    ],
    [
      'what is on and was stopped is started, though nobody sent a message',
      { reason: because('stopped_by_user') },
      { kind: 'start' },
    ],
    [
      'not installed is looked at before it is started',
      { reason: because('not_installed'), retryAt: now },
      { kind: 'look' },
    ],
    ['not installed is not looked at all the time', { reason: because('not_installed') }, { kind: 'nothing' }],
    ['a missing engine is looked for', { reason: because('no_engine'), retryAt: now }, { kind: 'look' }],
    ['an unreachable one is looked at', { reason: because('unreachable'), retryAt: now }, { kind: 'look' }],
    [
      'a template is stopped',
      { state: 'STARTED', reason: null, presence: 'template' },
      { kind: 'stop', reason: reasons.isTemplate },
    ],
    [
      'one that refuses connections is stopped',
      { state: 'STARTED', reason: null, presence: 'refusing' },
      { kind: 'stop', reason: reasons.refusesConnections },
    ],
    [
      'one whose database is gone is stopped',
      { state: 'ALLOCATED', presence: 'gone' },
      { kind: 'stop', reason: reasons.gone },
    ],
    ['and is left so', { reason: because('gone'), presence: 'gone', retryAt: now }, { kind: 'nothing' }],
    ['until the database is there', { reason: because('gone') }, { kind: 'start' }],
    [
      'a database on another server is looked for there',
      { reason: because('gone'), presence: 'unlisted', retryAt: now },
      { kind: 'look' },
    ],
    [
      'a template that refuses connections by now gets the other reason',
      { reason: reasons.isTemplate, presence: 'refusing' },
      { kind: 'stop', reason: reasons.refusesConnections },
    ],
    ['a template no more is started', { reason: because('not_connectable') }, { kind: 'start' }],
  ];
  it.each(cases)('%s', (_, more, expected) => {
    expect(care({ ...usual, ...more }, now)).toEqual(expected);
  });
});
