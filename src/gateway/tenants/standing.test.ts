import { expect, it } from 'vitest';
import type { DatabaseFault } from '../../postgres/database-health.ts';
import { reasons } from '../../control/reasons.ts';
import { standingOf } from './standing.ts';
import type { TenantState } from './queries.ts';

const retryAt = new Date('2030-01-01T00:00:05Z');
const running: TenantState = {
  id: '1',
  name: 'shop',
  database: 'shop',
  desired: 'on',
  ownHost: false,
  createdAt: new Date(0),
  state: 'STARTED',
  reason: null,
  leaving: false,
  waitOn: null,
  version: '0.1.0',
  failures: 0,
  retryAt: null,
  changedAt: new Date(0),
  host: { id: '2', machine: 'box7', pid: 7 },
  hostIsSilent: false,
  heardAt: new Date('2026-06-01T12:00:00Z'),
  endedAt: null,
  endReason: null,
  trouble: null,
  stoppedBy: null,
};
const off = { desired: 'off', state: 'DISABLED', reason: reasons.stoppedByUser } as const;
const full: DatabaseFault = {
  kind: 'no_writes',
  since: new Date(0),
  summary: 'the database refuses writes',
  detail: 'the database refuses writes: No space left on device',
};

const cases: readonly [string, Partial<TenantState>, string, string][] = [
  ['a scheduler that runs', {}, 'runs', 'runs'],
  [
    'a part that only tidies up fails',
    { trouble: reasons.error('failing', 'forgetting old runs fails') },
    'runs',
    'runs, but forgetting old runs fails',
  ],
  [
    'a host that is silent',
    { hostIsSilent: true },
    'will_run',
    'will run: not heard of since 2026-06-01T12:00:00.000Z: its host (box7, process 7) is silent',
  ],
  [
    'a crash',
    { state: 'DISABLED', reason: reasons.error('crashed', 'boom'), retryAt },
    'will_run',
    'will run: crashed: boom; next try at 2030-01-01T00:00:05.000Z',
  ],
  ['no slot', { state: 'ENABLED', reason: reasons.noSlot(3) }, 'will_run', 'will run: no slot (position 3)'],
  ['no launcher has looked', { state: null }, 'will_run', 'will run: no launcher has looked at it yet'],
  ['a person stopped it', { ...off, stoppedBy: 'key:anna' }, 'off', 'off: stopped by key:anna'],
  ['a stop under way', { desired: 'off', stoppedBy: 'key:anna' }, 'off', 'off: stopping, asked by key:anna'],
  ['it was stopped long ago', off, 'off', 'off: stopped by a person'],
  [
    'a drop that was cut short',
    { ...off, leaving: true, stoppedBy: 'key:anna' },
    'off',
    'off: stopped by key:anna to be dropped',
  ],
  ['not installed', { state: 'DISABLED', reason: reasons.notInstalled, retryAt }, 'off', 'off: not installed'],
];

it.each(cases)('%s', (_, part, standing, summary) => {
  const circumstances = { launcherActive: true, fault: undefined };
  expect(standingOf({ ...running, ...part }, circumstances)).toEqual({ standing, summary });
});

it('a tenant does not count as running, whatever its state, while the database rejects writes', () => {
  expect(standingOf(running, { launcherActive: false, fault: full })).toEqual({
    standing: 'will_run',
    summary: 'will run: the database refuses writes',
  });
});

it('a clock step is named for a running tenant', () => {
  const circumstances = { launcherActive: true, fault: undefined, clockFault: 'the clock was set back by 60 s' };
  expect(standingOf(running, circumstances).summary).toBe('runs, but the clock was set back by 60 s');
});

it('a missing launcher is named once', () => {
  const without = { launcherActive: false, fault: undefined };
  expect(standingOf(running, without).summary).toBe('runs, but no launcher is active');
  const starting = { state: 'ALLOCATED', reason: reasons.noLauncher } as const;
  expect(standingOf({ ...running, ...starting }, without).summary).toBe('will run: no launcher is active');
});
