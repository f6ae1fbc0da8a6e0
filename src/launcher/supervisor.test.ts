import { describe, expect, it } from 'vitest';
import { because } from '../../test/harness/turns.ts';
import { reasonCodes, reasons } from '../control/reasons.ts';
import {
  afterQuit,
  afterRunning,
  care,
  type Circumstances,
  hasChanged,
  isHostLeaving,
  retryAfterChange,
} from './supervisor.ts';

const now = new Date('2026-06-01T00:00:00Z');
const after = (ms: number): Date => new Date(now.getTime() + ms);
const least = (): number => 1;
const most = (): number => 0;
const wait = (retryAt: Date): number => retryAt.getTime() - now.getTime();

describe('after a scheduler has quit', () => {
  it.each(['crashed', 'unreachable'] as const)(
    'a tenant with the reason %s is retried after a growing pause, at most 15 s',
    (code) => {
      const waits = [0, 1, 2, 3, 4, 30].map((failures) =>
        wait(afterQuit({ reason: because(code) }, failures, now, most).retryAt),
      );
      expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
      expect(wait(afterQuit({ reason: because(code) }, 0, now, least).retryAt)).toBe(700);
      const { reason, failures, retryAt } = afterQuit({ reason: reasons.error(code, 'boom') }, 2, now, most);
      expect(failures).toBe(3);
      expect([reason, retryAt > now]).toEqual([reasons.error(code, 'boom'), true]);
    },
  );

  it.each(['not_installed', 'no_engine', 'gone'] as const)(
    'a tenant with the reason %s is inspected again after a second with jitter, and has not failed',
    (code) => {
      const { reason, failures, retryAt } = afterQuit({ reason: because(code) }, 7, now, most);
      expect(reason).toEqual(because(code));
      expect(failures).toBe(0);
      expect([wait(retryAt), wait(afterQuit({ reason: because(code) }, 7, now, least).retryAt)]).toEqual([1_000, 700]);
    },
  );

  it('an engine that the host cannot use counts as a failure', () => {
    const quit = { reason: because('no_engine'), ofHost: true };
    expect(afterQuit(quit, 0, now, most)).toMatchObject({ failures: 1, retryAt: after(1_000) });
    expect(afterQuit(quit, 4, now, most)).toMatchObject({ failures: 5, retryAt: after(15_000) });
  });

  it('missing things are inspected at growing intervals; one of many databases without Millrace within 25 s', () => {
    const waits = (code: 'not_installed' | 'no_engine', among: number) =>
      [0, 5_000, 10_000, 30_000, 60_000, 3_600_000].map((forMs) =>
        wait(afterQuit({ reason: because(code), forMs, among }, 0, now, most).retryAt),
      );
    expect(waits('not_installed', 200)).toEqual([1_000, 4_000, 8_000, 15_000, 25_000, 25_000]);
    expect(waits('not_installed', 20)).toEqual([1_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
    expect(waits('no_engine', 200)).toEqual([1_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
  });

  it('a lost host counts as a failure of the blamed tenant; the others start again at once', () => {
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

  it('a tenant that its host finds changed is inspected again, the first time at once', () => {
    expect(reasonCodes.filter(isHostLeaving)).toEqual(['stopping']);
    expect(reasonCodes.filter(hasChanged)).toEqual(['starting', 'waiting_on_transaction']);
    expect(retryAfterChange(0, now)).toBeNull();
    expect(retryAfterChange(1, now, most)).toEqual(after(1_000));
    expect(retryAfterChange(9, now, most)).toEqual(after(15_000));
  });

  it('failures are forgotten after a minute of running, and suspicion after ten', () => {
    const blame = { failures: 3, suspicion: 2 };
    expect(afterRunning(blame, 59_999)).toEqual(blame);
    expect(afterRunning(blame, 60_000)).toEqual({ failures: 0, suspicion: 2 });
    expect(afterRunning(blame, 600_000)).toEqual({ failures: 0, suspicion: 0 });
  });
});

describe('steps without a message', () => {
  const usual: Circumstances = {
    desired: 'on',
    presence: 'there',
    state: 'DISABLED',
    ending: false,
    reason: because('crashed'),
    retryAt: after(1),
  };
  const cases: [string, Partial<Circumstances>, ReturnType<typeof care>][] = [
    ['a wanted tenant that is not registered is registered', { state: undefined, reason: null }, { kind: 'register' }],
    [
      'an unregistered tenant that is off is registered as stopped',
      { state: undefined, reason: null, desired: 'off' },
      { kind: 'stop', reason: reasons.stoppedByUser },
    ],
    ['a crashed tenant is not started before its pause is over', {}, { kind: 'nothing' }],
    ['a crashed tenant is started after its pause', { retryAt: now }, { kind: 'start' }],
    [
      'a crashed tenant is not started before the longest pause is over',
      { retryAt: after(60_000) },
      { kind: 'nothing' },
    ],
    ['a retry time from before the clock was set back is ignored', { retryAt: after(60_001) }, { kind: 'start' }],
    ['a tenant that is still ending is not started', { ending: true, retryAt: now }, { kind: 'nothing' }],
    ['a running tenant is left as it is', { state: 'STARTED', reason: null }, { kind: 'nothing' }],
    [
      'a tenant that is off is stopped, even without a message',
      { state: 'STARTED', reason: null, desired: 'off' },
      { kind: 'stop', reason: reasons.stoppedByUser },
    ],
    [
      'a stopped tenant that is off is left as it is',
      { reason: because('stopped_by_user'), desired: 'off' },
      { kind: 'nothing' },
    ],
    [
      'a stopped tenant that is on is started, even without a message',
      { reason: because('stopped_by_user') },
      { kind: 'start' },
    ],
    [
      'a tenant without Millrace is inspected before it is started',
      { reason: because('not_installed'), retryAt: now },
      { kind: 'look' },
    ],
    [
      'a tenant without Millrace is not inspected before its pause is over',
      { reason: because('not_installed') },
      { kind: 'nothing' },
    ],
    ['a tenant with a missing engine is inspected', { reason: because('no_engine'), retryAt: now }, { kind: 'look' }],
    ['an unreachable tenant is inspected', { reason: because('unreachable'), retryAt: now }, { kind: 'look' }],
    [
      'a tenant whose database is a template is stopped',
      { state: 'STARTED', reason: null, presence: 'template' },
      { kind: 'stop', reason: reasons.isTemplate },
    ],
    [
      'a tenant whose database refuses connections is stopped',
      { state: 'STARTED', reason: null, presence: 'refusing' },
      { kind: 'stop', reason: reasons.refusesConnections },
    ],
    [
      'a tenant whose database is gone is stopped',
      { state: 'ALLOCATED', presence: 'gone' },
      { kind: 'stop', reason: reasons.gone },
    ],
    [
      'a stopped tenant whose database is gone is left as it is',
      { reason: because('gone'), presence: 'gone', retryAt: now },
      { kind: 'nothing' },
    ],
    ['a tenant whose database exists again is started', { reason: because('gone') }, { kind: 'start' }],
    [
      'a tenant whose database is missing on another server is inspected there',
      { reason: because('gone'), presence: 'unlisted', retryAt: now },
      { kind: 'look' },
    ],
    [
      'a template that now refuses connections gets the new reason',
      { reason: reasons.isTemplate, presence: 'refusing' },
      { kind: 'stop', reason: reasons.refusesConnections },
    ],
    [
      'a tenant whose database is no longer a template is started',
      { reason: because('not_connectable') },
      { kind: 'start' },
    ],
  ];
  it.each(cases)('%s', (_, more, expected) => {
    expect(care({ ...usual, ...more }, now)).toEqual(expected);
  });
});
