/** `decide`, the pure function of a turn: from the state that was read to the plan. */
import { describe, expect, it } from 'vitest';
import { at, because, failedLaunch, makeEntry, makeHost, makeSlot, makeWorld, now } from '../../test/harness/turns.ts';
import type { OpenMessage } from './launch-queries.ts';
import type { Launch, LaunchEntry } from './ledger.ts';
import type { MessageKind } from '../control/messages.ts';
import { reasons } from '../control/reasons.ts';
import { decide, type World } from './turn.ts';

describe('unreachable tenants', () => {
  it('unreachable tenants are inspected at once after the first failure, and as idle ones later', () => {
    const entries = [1, 2, 9].map((failures) => makeEntry({ ...failedLaunch, failures }));
    expect(decide(makeWorld({ entries })).looks.map(({ idle }) => idle)).toEqual([false, true, true]);
  });

  it('unreachable tenants are inspected in the order of their due times', () => {
    const entries = [-1, -9, -5].map((due) => makeEntry({ ...failedLaunch, retryAt: at(due) }));
    const { looks } = decide(makeWorld({ entries }));
    expect(looks.map((each) => each.entry.launch?.retryAt)).toEqual([at(-9), at(-5), at(-1)]);
  });
});

describe('recovery of the server that tenants share with the launcher', () => {
  const waiting = {
    ...failedLaunch,
    failures: 7,
    retryAt: at(9),
  };

  it('the recovery ends the pauses of unreachable tenants, and all are inspected together', () => {
    const entries = [makeEntry(waiting), makeEntry(waiting)];
    expect(decide(makeWorld({ entries })).looks).toEqual([]);
    expect(decide(makeWorld({ entries, isRecovering: true })).dueAt).toEqual(at(0.2));
    expect(decide(makeWorld({ entries, now: at(0.2) })).looks.map(({ idle }) => idle)).toEqual([false, false]);
  });

  it('the recovery does not end pauses of tenants on another server, or of crashed tenants', () => {
    const elsewhere = makeWorld({ entries: [makeEntry(waiting)], isRecovering: true, presenceOf: () => 'unlisted' });
    expect(decide(elsewhere).looks).toEqual([]);
    const crashed = makeWorld({ entries: [makeEntry({ ...waiting, reason: because('crashed') })], isRecovering: true });
    expect(decide(crashed).changes).toEqual([]);
  });

  it('the recovery leaves 200 ms between two attempts of a tenant', () => {
    const again = { ...waiting, changedAt: at(-60) };
    const { looks, changes } = decide(makeWorld({ entries: [makeEntry(again)], isRecovering: true }));
    expect([looks, changes[0]?.launch.retryAt]).toEqual([[], at(0.2)]);
  });
});

it('a tenant that is off is inspected when a transaction changes it, even if the last inspection is recent', () => {
  const { tenant, ...rest } = makeEntry({
    ...failedLaunch,
    reason: because('stopped_by_user'),
    retryAt: at(50),
  });
  const off: LaunchEntry = { ...rest, tenant: { ...tenant, desired: 'off' } };
  const sighting = {
    databaseOid: 1,
    what: 'drain',
    pid: 7,
    virtualTransaction: '3/4',
    xid: '8',
    granted: true,
    inTheWay: true,
  } as const;
  expect(decide(makeWorld({ entries: [off] })).looks).toEqual([]);
  const plan = decide(makeWorld({ entries: [off], sightings: [sighting] }));
  expect(plan).toMatchObject({ unsent: [], changes: [{ launch: { retryAt: null } }] });
  const later = { ...off, launch: plan.changes[0]?.launch, before: plan.changes[0]?.launch };
  expect(decide(makeWorld({ entries: [later] })).looks).toHaveLength(1);
});

it('a tenant that is off is inspected when a transaction has ended, and by a new launcher', () => {
  const { tenant, ...rest } = makeEntry({
    ...failedLaunch,
    reason: because('stopped_by_user'),
    retryAt: at(50),
  });
  const isDue = (more: Partial<World>): boolean => {
    const off: LaunchEntry = { ...rest, tenant: { ...tenant, desired: 'off' } };
    return decide(makeWorld({ entries: [off], ...more })).changes[0]?.launch?.retryAt === null;
  };
  expect(isDue({ known: new Map([['1 drain 7 3/4', tenant.id]]) })).toBe(true);
  expect(isDue({ isNew: true })).toBe(true);
  expect(isDue({})).toBe(false);
});

describe('tenant that passes the inspection and fails', () => {
  const installed = { kind: 'installed', version: '1', engine: { ok: true } } as const;
  const change = (one: LaunchEntry, more: Partial<World> = {}) =>
    decide(makeWorld({ entries: [one], ...more })).changes[0];

  it.each(['unreachable', 'no_engine'] as const)(
    'a tenant keeps the code %s, without events, until it runs',
    (code) => {
      const found = makeEntry({ ...failedLaunch, reason: because(code), failures: 3 });
      const tried = change(found, { findings: new Map([[found.tenant.id, installed]]), hosts: [makeHost('a')] });
      expect(tried).toMatchObject({
        isNews: false,
        launch: { state: 'ALLOCATED', reason: { code }, failures: 3, retryAt: null },
      });
      const ordered = { ...failedLaunch, state: 'ALLOCATED', hostId: 'a', ordered: true } as const;
      const given = makeEntry({ ...ordered, reason: because(code), failures: 3 });
      const report = { orderNo: 1, hostId: 'a', reason: because('starting') } as const;
      const starting = change({ ...given, report: { ...report, phase: 'starting' } }, { hosts: [makeHost('a')] });
      expect(starting?.isNews ?? false).toBe(false);
      const end = { ...report, phase: 'ended', reason: because(code) } as const;
      const ended = change({ ...given, report: end }, { hosts: [makeHost('a')] });
      expect(ended).toMatchObject({ isNews: false, launch: { state: 'DISABLED', reason: { code }, failures: 4 } });
      expect(ended?.launch.retryAt?.getTime()).toBeGreaterThanOrEqual(at(5).getTime());
      const running = change({ ...given, report: { ...report, phase: 'running' } }, { hosts: [makeHost('a')] });
      expect(running).toMatchObject({ isNews: true, launch: { state: 'STARTED', reason: null } });
    },
  );
});

it('A tenant whose scheduler hangs is ALLOCATED with the reason, and STARTED once its host reports that it runs', () => {
  const running = { ...failedLaunch, state: 'STARTED', hostId: 'a', ordered: true, failures: 0 } as const;
  const given = makeEntry({ ...running, reason: null, retryAt: null });
  const reason = reasons.failing([{ doing: 'firing', since: now.toISOString(), message: null, hang: null }]);
  const report = { orderNo: 1, hostId: 'a', phase: 'starting', reason } as const;
  const changeOf = (entry: LaunchEntry) => decide(makeWorld({ entries: [entry], hosts: [makeHost('a')] })).changes[0];
  const hung = changeOf({ ...given, report });
  expect(hung).toMatchObject({
    isNews: true,
    launch: { state: 'ALLOCATED', reason, hostId: 'a', ordered: true, failures: 0 },
  });
  const hanging = makeEntry({ ...running, state: 'ALLOCATED', reason, retryAt: null });
  expect(changeOf({ ...hanging, report })).toBeUndefined();
  const healed = changeOf({ ...hanging, report: { ...report, phase: 'running', reason: null } });
  expect(healed?.launch).toMatchObject({ state: 'STARTED', reason: null, ordered: true });
});

describe('tenant whose engine this machine lacks', () => {
  const lacking = { kind: 'installed', version: '1', engine: { ok: false, detail: 'not here' } } as const;

  it.each([
    ['DISABLED', 'no_engine'],
    ['ALLOCATED', 'starting'],
  ] as const)('a %s tenant is given to a host elsewhere that has its engine', (state, code) => {
    const one = makeEntry({ ...failedLaunch, state, reason: because(code) });
    const findings = new Map([[one.tenant.id, lacking]]);
    const slots = state === 'ALLOCATED' ? [{ ...makeSlot('a', 'scheduler'), tenantId: one.tenant.id }] : [];
    const { changes } = decide(makeWorld({ entries: [one], findings, slots, hosts: [makeHost('a')] }));
    expect(changes[0]?.launch).toMatchObject({ state: 'ALLOCATED', hostId: 'a', ordered: true });
    const none = decide(
      makeWorld({ entries: [makeEntry({ ...failedLaunch, state, reason: because(code) })], findings, slots }),
    );
    expect(none.changes.filter(({ launch }) => launch.ordered)).toEqual([]);
  });

  it('a tenant moves to another host than the one in which it failed', () => {
    const one = makeEntry({ ...failedLaunch, state: 'ALLOCATED', reason: because('no_engine') });
    const report = { orderNo: 1, hostId: 'a', phase: 'ended', reason: because('no_engine') } as const;
    const findings = new Map([[one.tenant.id, lacking]]);
    const slots = [{ ...makeSlot('a', 'scheduler'), tenantId: one.tenant.id }];
    const plan = decide(
      makeWorld({ entries: [{ ...one, report }], findings, slots, hosts: [makeHost('a'), makeHost('b')] }),
    );
    expect(plan.changedOrders).toEqual([{ hostId: 'b', tenantId: one.tenant.id }]);
  });
});

describe('slot of a failed scheduler', () => {
  const crashed = { ...failedLaunch, reason: because('crashed'), retryAt: at(5) } as const;
  const slotsAfter = (launch: Launch): readonly string[] => {
    const [one, waiting] = [
      makeEntry(launch),
      makeEntry({ ...failedLaunch, state: 'ENABLED', reason: because('no_slot'), retryAt: null }),
    ];
    const held = { ...makeSlot('a', 'scheduler'), tenantId: one.tenant.id, holder: null };
    const inLine = { ...makeSlot('a', 'scheduler'), tenantId: waiting.tenant.id, grantedAt: null };
    decide(makeWorld({ entries: [one, waiting], slots: [held, inLine], limit: 2 }));
    return [one, waiting].map(({ launch: now }) => now?.state ?? '');
  };

  it('a failed scheduler keeps its slot for three attempts, although others wait for one', () => {
    expect([1, 2, 3].map((failures) => slotsAfter({ ...crashed, failures }))).toEqual(
      Array.from({ length: 3 }, () => ['DISABLED', 'ENABLED']),
    );
    expect(slotsAfter({ ...crashed, failures: 4 })).toEqual(['DISABLED', 'ALLOCATED']);
  });

  it('a failed scheduler is started again in the slot that it has kept', () => {
    expect(slotsAfter({ ...crashed, failures: 2, retryAt: at(-1) })).toEqual(['ALLOCATED', 'ENABLED']);
  });
});

describe('lowered limit', () => {
  it('a tenant that loses its slot while it waits for a transaction still waits for it later', () => {
    const waiting = { ...failedLaunch, state: 'ALLOCATED', waitOn: '42' } as const;
    const one = makeEntry({ ...waiting, reason: because('waiting_on_transaction') });
    const slots = [{ ...makeSlot('a', 'scheduler'), tenantId: one.tenant.id }];
    const { changes } = decide(makeWorld({ entries: [one], slots, limit: 1 }));
    expect(changes[0]?.launch).toMatchObject({ state: 'ENABLED', reason: { code: 'no_slot' }, waitOn: '42' });
  });
});

describe('messages', () => {
  const message = (id: number, kind: MessageKind, tenantId: string, acknowledged = false): OpenMessage => ({
    id,
    kind,
    tenantId,
    xid: null,
    deadline: at(60),
    outcome: null,
    detail: null,
    acknowledgedAt: acknowledged ? at(-1) : null,
    settledAt: null,
  });

  const outcomesOf = (kinds: readonly MessageKind[], launch: Launch) => {
    const one = makeEntry(launch);
    const messages = kinds.map((kind, i) => message(i + 1, kind, one.tenant.id, i === 0));
    const slots = [{ ...makeSlot('a', 'scheduler'), tenantId: one.tenant.id }];
    const plan = decide(makeWorld({ entries: [one], messages, slots, hosts: [makeHost('a')] }));
    const changed = new Map(plan.messages.map((each) => [each.id, each]));
    return messages.map(({ id, outcome }) => changed.get(id)?.outcome ?? outcome);
  };
  const running = { ...failedLaunch, state: 'STARTED', reason: null, hostId: 'a', ordered: true } as const;

  it('messages with the same goal share their outcome', () => {
    expect(outcomesOf(['start', 'start', 'start'], running)).toEqual(['started', 'started', 'started']);
    expect(outcomesOf(['start', 'start', 'restart'], { ...failedLaunch })).toEqual([
      'accepted',
      'accepted',
      'accepted',
    ]);
  });

  it('a stop supersedes starts and restarts, and a restart supersedes a stop', () => {
    expect(outcomesOf(['start', 'restart', 'stop'], { ...failedLaunch })).toEqual([
      'superseded',
      'superseded',
      'stopped',
    ]);
    expect(outcomesOf(['stop', 'start'], { ...running, state: 'DISABLED', ordered: false, ending: true })).toEqual([
      null,
      'accepted',
    ]);
    expect(outcomesOf(['stop', 'restart'], { ...running, state: 'DISABLED', ordered: false, ending: true })).toEqual([
      'superseded',
      'accepted',
    ]);
  });

  it('the outcome of a restart names the version, which is the old one after a failed upgrade', () => {
    const one = makeEntry({ ...failedLaunch, state: 'STARTED', reason: null, hostId: 'a', ordered: true });
    const slots = [{ ...makeSlot('a', 'scheduler'), tenantId: one.tenant.id }];
    const messages = [message(1, 'restart', one.tenant.id, true)];
    const plan = decide(makeWorld({ entries: [one], hosts: [makeHost('a')], slots, messages }));
    expect(plan.messages).toMatchObject([{ outcome: 'started', detail: 'at 1', settledAt: now }]);
  });
});
