import { expect, test } from 'vitest';
import {
  detailOf,
  isClosed,
  isUnderWay,
  needsLook,
  nextTryOf,
  sentenceWords,
  standingWhy,
  standingWord,
  type Tenant,
  toneOf,
} from './standing.ts';

type Code = NonNullable<Tenant['reason_code']>;
const reasonCodes: readonly Code[] = [
  'stopped_by_user',
  'starting',
  'stopping',
  'waiting_on_transaction',
  'no_slot',
  'no_engine',
  'not_installed',
  'unreachable',
  'not_connectable',
  'crashed',
  'failing',
  'gone',
];

const disabled = (reason_code: Code, desired: 'on' | 'off' = 'on') =>
  ({ state: 'DISABLED', reason_code, desired }) as const;

test('what runs is well, whatever was the matter before', () => {
  expect(toneOf({ state: 'STARTED', reason_code: null })).toBe('well');
  expect(needsLook({ state: 'STARTED', reason_code: null, desired: 'on' })).toBe(false);
});

test('a STARTED tenant without heartbeats needs attention', () => {
  for (const reason_code of ['silent', 'stopping', 'unreachable'] as const) {
    expect(toneOf({ state: 'STARTED', reason_code })).toBe('bad');
    expect(needsLook({ state: 'STARTED', reason_code, desired: 'on' })).toBe(true);
  }
});

test('a tenant that should run and cannot needs attention', () => {
  const looked = reasonCodes.filter((code) => needsLook(disabled(code)));
  expect(looked).toEqual([
    'waiting_on_transaction',
    'no_slot',
    'no_engine',
    'unreachable',
    'not_connectable',
    'crashed',
    'failing',
    'gone',
  ]);
  expect(reasonCodes.filter((code) => needsLook(disabled(code, 'off')))).toEqual([]);
});

test('a tenant in transition is read again soon', () => {
  const busy = reasonCodes.filter((code) => isUnderWay({ state: 'ALLOCATED', reason_code: code, desired: 'on' }));
  expect(busy).toEqual(['starting', 'stopping', 'waiting_on_transaction']);
});

test('a tenant that is stopped, or crashes, can still be read', () => {
  for (const code of ['stopped_by_user', 'crashed', 'no_slot'] as const) expect(isClosed(code)).toBe(false);
  for (const code of ['gone', 'no_engine', 'not_installed'] as const) expect(isClosed(code)).toBe(true);
  expect(isClosed(null)).toBe(false);
});

test('no countdown is shown for a database without Millrace', () => {
  const retry_at = '2026-11-16T10:00:05Z';
  expect(nextTryOf({ reason_code: 'not_installed', retry_at })).toBe(null);
  expect(nextTryOf({ reason_code: 'unreachable', retry_at })).toBe(retry_at);
});

test('a detail that only repeats the outcome is left out', () => {
  expect(detailOf({ outcome: 'not_installed', detail: 'not installed' })).toBe(null);
  expect(detailOf({ outcome: 'crashed', detail: 'out of memory' })).toBe('out of memory');
});

test('the first word says whether it runs, the rest says why', () => {
  const shown = (standing: Tenant['standing'], summary: string) => [
    standingWord({ standing, summary }),
    standingWhy({ standing, summary }),
  ];
  expect(shown('runs', 'runs')).toEqual(['runs', null]);
  expect(shown('runs', 'runs, but forgetting old runs fails')).toEqual(['runs, but', 'forgetting old runs fails']);
  expect(shown('off', 'off: stopped by key:anna')).toEqual(['off', 'stopped by key:anna']);
  expect(shown('will_run', 'will run: crashed: boom; next try at 2026-11-16T10:00:05.123Z')).toEqual([
    'will run',
    'crashed: boom',
  ]);
});

test('times in a sentence are written as everywhere, and names stay as they are', () => {
  expect(sentenceWords('billing was stopped by key:root at 2026-11-16T11:05:09.649Z.')).toBe(
    'billing was stopped by key:root at 2026-11-16 11:05:09Z.',
  );
});
