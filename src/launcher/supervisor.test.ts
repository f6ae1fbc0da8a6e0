import { describe, expect, it } from 'vitest';
import { reasonCodes, reasons } from './reasons.ts';
import { afterQuit, afterRunning, care, type Circumstances, isLeft, isOtherwise, whenOtherwise } from './supervisor.ts';

const now = new Date('2026-06-01T00:00:00Z');
const after = (ms: number): Date => new Date(now.getTime() + ms);
const least = (): number => 1;
const most = (): number => 0;
const wait = (retryAt: Date): number => retryAt.getTime() - now.getTime();

describe('after a scheduler has quit', () => {
  it.each([
    ['crashed', 'a minute', [1_000, 2_000, 4_000, 32_000, 60_000, 60_000]],
    ['unreachable', 'ten seconds', [1_000, 2_000, 4_000, 10_000, 10_000, 10_000]],
  ] as const)('%s: tried again after a growing pause, at most %s', (code, _, expected) => {
    const waits = [0, 1, 2, 5, 6, 30].map((failures) =>
      wait(afterQuit({ code, detail: 'x' }, failures, now, most).retryAt),
    );
    expect(waits).toEqual(expected);
    expect(wait(afterQuit({ code, detail: 'x' }, 0, now, least).retryAt)).toBe(700);
    const { reason, failures, retryAt } = afterQuit({ code, detail: 'boom' }, 2, now, most);
    expect(failures).toBe(3);
    expect(reason).toEqual({ code, text: `${code} until ${retryAt.toISOString()}: boom` });
  });

  it.each([
    ['not_installed', 'not installed'],
    ['no_engine', 'no engine: x'],
    ['gone', 'gone: its database does not exist'],
  ] as const)('%s: looked at again after five seconds, not all at once, and it is no failure', (code, text) => {
    const { reason, failures, retryAt } = afterQuit({ code, detail: 'x' }, 7, now, most);
    expect(reason).toEqual({ code, text });
    expect(failures).toBe(0);
    expect([wait(retryAt), wait(afterQuit({ code, detail: 'x' }, 7, now, least).retryAt)]).toEqual([5_000, 4_000]);
  });

  it('an engine that its host cannot use is a failure', () => {
    const quit = { code: 'no_engine', detail: 'x', ofHost: true } as const;
    expect(afterQuit(quit, 0, now, most)).toMatchObject({ failures: 1, retryAt: after(5_000) });
    expect(afterQuit(quit, 4, now, most)).toMatchObject({ failures: 5, retryAt: after(10_000) });
  });

  it('what stays not installed, and is one of many, is looked at ever more rarely, but within half a minute', () => {
    const waits = (code: 'not_installed' | 'no_engine', among: number) =>
      [0, 5_000, 10_000, 30_000, 60_000, 3_600_000].map((forMs) =>
        wait(afterQuit({ code, detail: 'x', forMs, among }, 0, now, most).retryAt),
      );
    expect(waits('not_installed', 200)).toEqual([5_000, 5_000, 5_000, 15_000, 25_000, 25_000]);
    expect(waits('not_installed', 40)).toEqual([5_000, 5_000, 5_000, 10_000, 10_000, 10_000]);
    expect(waits('not_installed', 20)).toEqual([5_000, 5_000, 5_000, 5_000, 5_000, 5_000]);
    expect(waits('no_engine', 200)).toEqual([5_000, 5_000, 5_000, 5_000, 5_000, 5_000]);
  });

  it('a host that is lost is nobody’s failure who may have shared it; of one who is alone with it, it is', () => {
    const waitsOf = (lost: { isBlamed: boolean; wasSilent: boolean }) =>
      [0, 1, 2, 5, 6].map((failures) => {
        const { retryAt, ...after } = afterQuit({ code: 'crashed', detail: 'x', lost }, failures, now, most);
        return [wait(retryAt), after.failures - failures];
      });
    const atOnce = [1_000, 0];
    for (const wasSilent of [true, false])
      expect(waitsOf({ isBlamed: false, wasSilent })).toEqual([atOnce, atOnce, atOnce, atOnce, atOnce]);
    const growing = (capMs: number) => [1_000, 2_000, 4_000, 32_000, 60_000].map((ms) => [Math.min(capMs, ms), 1]);
    expect(waitsOf({ isBlamed: true, wasSilent: true })).toEqual(growing(60_000));
    expect(waitsOf({ isBlamed: true, wasSilent: false })).toEqual(growing(10_000));
  });

  it('what its host finds otherwise is looked at again, the first time at once', () => {
    expect(reasonCodes.filter(isLeft)).toEqual(['stopping']);
    expect(reasonCodes.filter(isOtherwise)).toEqual(['starting', 'waiting_on_transaction']);
    expect(whenOtherwise(0, now)).toBeNull();
    expect(whenOtherwise(1, now, most)).toEqual(after(1_000));
    expect(whenOtherwise(9, now, most)).toEqual(after(60_000));
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
    code: 'crashed',
    retryAt: after(1),
  };
  const cases: [string, Partial<Circumstances>, ReturnType<typeof care>][] = [
    ['one that is wanted and unknown is registered', { state: undefined, code: null }, { kind: 'register' }],
    [
      'one that is off and unknown is registered as stopped',
      { state: undefined, code: null, desired: 'off' },
      { kind: 'stop', reason: reasons.stoppedByUser },
    ],
    ['a crash is waited out', {}, { kind: 'nothing' }],
    ['a crash is tried again', { retryAt: now }, { kind: 'start' }],
    ['nobody starts what is still ending', { ending: true, retryAt: now }, { kind: 'nothing' }],
    ['what runs is left alone', { state: 'STARTED', code: null }, { kind: 'nothing' }],
    [
      'what is off is stopped, though nobody sent a message',
      { state: 'STARTED', code: null, desired: 'off' },
      { kind: 'stop', reason: reasons.stoppedByUser },
    ],
    ['what is off and stopped is left alone', { code: 'stopped_by_user', desired: 'off' }, { kind: 'nothing' }],
    [
      'what is on and was stopped is started, though nobody sent a message',
      { code: 'stopped_by_user' },
      { kind: 'start' },
    ],
    ['not installed is looked at before it is started', { code: 'not_installed', retryAt: now }, { kind: 'look' }],
    ['not installed is not looked at all the time', { code: 'not_installed' }, { kind: 'nothing' }],
    ['a missing engine is looked for', { code: 'no_engine', retryAt: now }, { kind: 'look' }],
    ['an unreachable one is looked at', { code: 'unreachable', retryAt: now }, { kind: 'look' }],
    [
      'a template is stopped',
      { state: 'STARTED', code: null, presence: 'template' },
      { kind: 'stop', reason: reasons.isTemplate },
    ],
    [
      'one that refuses connections is stopped',
      { state: 'STARTED', code: null, presence: 'refusing' },
      { kind: 'stop', reason: reasons.refusesConnections },
    ],
    [
      'one whose database is gone is stopped',
      { state: 'ALLOCATED', presence: 'gone' },
      { kind: 'stop', reason: reasons.gone },
    ],
    ['and is left so', { code: 'gone', presence: 'gone', retryAt: now }, { kind: 'nothing' }],
    ['until the database is there', { code: 'gone' }, { kind: 'start' }],
    [
      'a database on another server is looked for there',
      { code: 'gone', presence: 'unlisted', retryAt: now },
      { kind: 'look' },
    ],
    ['a template no more is started', { code: 'not_connectable' }, { kind: 'start' }],
  ];
  it.each(cases)('%s', (_, more, expected) => {
    expect(care({ ...usual, ...more }, now)).toEqual(expected);
  });
});
