/** Turns as a pure function: what was read becomes what is to be done. */
import { describe, expect, it } from 'vitest';
import { newId } from '../kernel/id.ts';
import type { LaunchHost, OpenMessage } from './launch-queries.ts';
import type { Launch, LaunchEntry } from './ledger.ts';
import type { MessageKind } from './messages.ts';
import type { Slot } from './slots.ts';
import { decide, type World } from './turn.ts';

const now = new Date('2026-06-01T00:00:00Z');
const at = (seconds: number): Date => new Date(now.getTime() + seconds * 1_000);

const failed: Launch = {
  state: 'DISABLED',
  code: 'unreachable',
  reason: 'unreachable',
  waitOn: null,
  version: '1',
  hostId: null,
  engine: '1',
  orderNo: 1,
  ordered: false,
  ending: false,
  failures: 1,
  suspicion: 0,
  retryAt: at(-1),
  changedAt: at(-2),
};

function entry(launch: Launch): LaunchEntry {
  const id = newId();
  const tenant = { id, name: id, database: id, databaseOid: 1, desired: 'on', discovered: false } as const;
  return {
    tenant: { ...tenant, ownHost: false },
    before: launch,
    launch,
    word: undefined,
    transactionIsOpen: false,
    housekeptMs: 0,
  };
}

const host = (id: string): LaunchHost => ({
  id,
  machine: 'here',
  pid: 1,
  engine: '1',
  leaving: false,
  onDemand: true,
  unsaid: [],
  startedAt: at(-60),
  beatMs: now.getTime(),
});

const world = (more: Partial<World> = {}): World => ({
  now,
  launcherId: newId(),
  limit: 64,
  entries: [],
  hosts: [],
  slots: [],
  messages: [],
  sightings: [],
  presenceOf: () => 'there',
  findings: new Map(),
  mayJudge: true,
  known: new Map(),
  isNew: false,
  isRecovering: false,
  mostHosts: 9,
  hostFaults: new Map(),
  ...more,
});

const slot = (holder: string, kind: Slot['kind']): Slot => ({
  id: newId(),
  kind,
  tenantId: newId(),
  holder,
  reason: 'retention',
  askedAt: at(-9),
  grantedAt: at(-8),
  lent: false,
});

describe('tenants that could not be reached', () => {
  it('are looked at at once, all of them, the first time; from then on without haste', () => {
    const entries = [1, 2, 9].map((failures) => entry({ ...failed, failures }));
    expect(decide(world({ entries })).looks.map(({ idle }) => idle)).toEqual([false, true, true]);
  });

  it('are looked at in the order in which that was due', () => {
    const entries = [-1, -9, -5].map((due) => entry({ ...failed, retryAt: at(due) }));
    const { looks } = decide(world({ entries }));
    expect(looks.map((each) => each.entry.launch?.retryAt)).toEqual([at(-9), at(-5), at(-1)]);
  });
});

describe('the recovery of the server that tenants share with the launcher', () => {
  const waiting = {
    ...failed,
    failures: 7,
    retryAt: at(9),
    reason: `unreachable until ${at(9).toISOString()}: refused`,
  };

  it('cuts the pauses of unreachable tenants short, and looks at all of them at once', () => {
    const entries = [entry(waiting), entry(waiting)];
    expect(decide(world({ entries })).looks).toEqual([]);
    expect(decide(world({ entries, isRecovering: true })).looks.map(({ idle }) => idle)).toEqual([false, false]);
  });

  it('leaves those on another server, and those that crashed, to their pauses', () => {
    const elsewhere = world({ entries: [entry(waiting)], isRecovering: true, presenceOf: () => 'unlisted' });
    expect(decide(elsewhere).looks).toEqual([]);
    const crashed = world({ entries: [entry({ ...waiting, code: 'crashed' })], isRecovering: true });
    expect(decide(crashed).changes).toEqual([]);
  });

  it('leaves a moment between two tries of a tenant', () => {
    const again = { ...waiting, changedAt: at(0) };
    const { looks, changes, dueAt } = decide(world({ entries: [entry(again)], isRecovering: true }));
    expect([looks, changes[0]?.launch.reason]).toEqual([[], `unreachable until ${at(0.2).toISOString()}: refused`]);
    expect(dueAt).toEqual(at(0.2));
  });
});

it('a tenant that is off is looked at when a transaction changes it, though it was not long ago', () => {
  const { tenant, ...rest } = entry({ ...failed, code: 'stopped_by_user', reason: 'stopped', retryAt: at(50) });
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
  expect(decide(world({ entries: [off] })).looks).toEqual([]);
  const plan = decide(world({ entries: [off], sightings: [sighting] }));
  expect(plan).toMatchObject({ unsent: [], changes: [{ launch: { retryAt: null } }] });
  const later = { ...off, launch: plan.changes[0]?.launch, before: plan.changes[0]?.launch };
  expect(decide(world({ entries: [later] })).looks).toHaveLength(1);
});

it('a tenant that is off is looked at when what was in sight has ended, and by a launcher that has just become active', () => {
  const { tenant, ...rest } = entry({ ...failed, code: 'stopped_by_user', reason: 'stopped', retryAt: at(50) });
  const isDue = (more: Partial<World>): boolean => {
    const off: LaunchEntry = { ...rest, tenant: { ...tenant, desired: 'off' } };
    return decide(world({ entries: [off], ...more })).changes[0]?.launch?.retryAt === null;
  };
  expect(isDue({ known: new Map([['1 drain 7 3/4', tenant.id]]) })).toBe(true);
  expect(isDue({ isNew: true })).toBe(true);
  expect(isDue({})).toBe(false);
});

describe('one that is found well and fails all the same', () => {
  const installed = { kind: 'installed', version: '1', engine: { ok: true } } as const;
  const change = (one: LaunchEntry, more: Partial<World> = {}) => decide(world({ entries: [one], ...more })).changes[0];

  it.each(['unreachable', 'no_engine'] as const)('%s is what it stays, and no news, until it runs', (code) => {
    const found = entry({ ...failed, code, failures: 3 });
    const tried = change(found, { findings: new Map([[found.tenant.id, installed]]), hosts: [host('a')] });
    expect(tried).toMatchObject({ isNews: false, launch: { state: 'ALLOCATED', code, failures: 3, retryAt: null } });
    const given = entry({ ...failed, state: 'ALLOCATED', code, failures: 3, hostId: 'a', ordered: true });
    const word = { orderNo: 1, hostId: 'a', code: null, reason: 'starting' } as const;
    const starting = change({ ...given, word: { ...word, phase: 'starting' } }, { hosts: [host('a')] });
    expect(starting?.isNews ?? false).toBe(false);
    const ended = change({ ...given, word: { ...word, phase: 'ended', code } }, { hosts: [host('a')] });
    expect(ended).toMatchObject({ isNews: false, launch: { state: 'DISABLED', code, failures: 4 } });
    expect(ended?.launch.retryAt?.getTime()).toBeGreaterThanOrEqual(at(5).getTime());
    const running = change({ ...given, word: { ...word, phase: 'running' } }, { hosts: [host('a')] });
    expect(running).toMatchObject({ isNews: true, launch: { state: 'STARTED', code: null } });
  });
});

describe('a tenant whose engine this machine lacks', () => {
  const lacking = { kind: 'installed', version: '1', engine: { ok: false, detail: 'not here' } } as const;

  it.each([
    ['DISABLED', 'no_engine'],
    ['ALLOCATED', 'starting'],
  ] as const)('is given to a host that has it elsewhere, from %s on', (state, code) => {
    const one = entry({ ...failed, state, code });
    const findings = new Map([[one.tenant.id, lacking]]);
    const slots = state === 'ALLOCATED' ? [{ ...slot('a', 'scheduler'), tenantId: one.tenant.id }] : [];
    const { changes } = decide(world({ entries: [one], findings, slots, hosts: [host('a')] }));
    expect(changes[0]?.launch).toMatchObject({ state: 'ALLOCATED', hostId: 'a', ordered: true });
    const none = decide(world({ entries: [entry({ ...failed, state, code })], findings, slots }));
    expect(none.changes.filter(({ launch }) => launch.ordered)).toEqual([]);
  });

  it('goes to another host than the one that has failed it', () => {
    const one = entry({ ...failed, state: 'ALLOCATED', code: 'no_engine' });
    const word = { orderNo: 1, hostId: 'a', phase: 'ended', code: 'no_engine', reason: 'no' } as const;
    const findings = new Map([[one.tenant.id, lacking]]);
    const slots = [{ ...slot('a', 'scheduler'), tenantId: one.tenant.id }];
    const plan = decide(world({ entries: [{ ...one, word }], findings, slots, hosts: [host('a'), host('b')] }));
    expect(plan.told).toEqual([{ hostId: 'b', tenantId: one.tenant.id }]);
  });
});

describe('a tenant that is ending when its host is lost', () => {
  const suspicionOf = (phase: 'running' | 'ended'): number | undefined => {
    const ending = { ...failed, state: 'ALLOCATED', code: 'stopping', hostId: 'a', ending: true } as const;
    const word = { orderNo: 1, hostId: 'a', phase, code: null, reason: null } as const;
    const hosts = [{ ...host('a'), beatMs: Number.NEGATIVE_INFINITY }];
    const { changes } = decide(world({ entries: [{ ...entry(ending), word }], hosts }));
    return changes[0]?.launch.suspicion;
  };

  it('is suspected, unless it had ended', () => {
    expect([suspicionOf('running'), suspicionOf('ended')]).toEqual([1, 0]);
  });
});

it('that its host was lost is a failure of a tenant only when it is alone by then', () => {
  const failuresAfter = (suspicion: number): number | undefined => {
    const running = { ...failed, state: 'STARTED', hostId: 'a', ordered: true, failures: 0, suspicion } as const;
    const hosts = [{ ...host('a'), beatMs: Number.NEGATIVE_INFINITY }];
    return decide(world({ entries: [entry(running)], hosts })).changes[0]?.launch.failures;
  };
  expect([0, 1, 2, 3].map(failuresAfter)).toEqual([0, 0, 0, 1]);
});

it('housekeeping is not given the slot of one that crashed and comes back', () => {
  const crashed = entry({ ...failed, code: 'crashed', retryAt: at(5) });
  const waiting = { ...slot('a', 'housekeeping'), askedAt: at(-1), grantedAt: null };
  const granted = (limit: number) =>
    decide(world({ entries: [crashed], slots: [waiting], hosts: [host('a')], limit })).served.length;
  expect([granted(2), granted(3)]).toEqual([0, 1]);
});

describe('a limit that was lowered', () => {
  it('sends one back to the line that waits for a transaction, and it does so still', () => {
    const one = entry({ ...failed, state: 'ALLOCATED', code: 'waiting_on_transaction', waitOn: '42' });
    const slots = [{ ...slot('a', 'scheduler'), tenantId: one.tenant.id }];
    const { changes } = decide(world({ entries: [one], slots, limit: 1 }));
    expect(changes[0]?.launch).toMatchObject({ state: 'ENABLED', code: 'no_slot', waitOn: '42' });
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

  it('are superseded: by a stop or a restart whatever came before, by a start other starts', () => {
    const [one, other] = [entry({ ...failed }), entry({ ...failed })];
    const of = (id: number, kind: MessageKind, acknowledged = false): OpenMessage =>
      message(id, kind, one.tenant.id, acknowledged);
    const messages = [
      of(1, 'start', true),
      of(2, 'start'),
      message(3, 'start', other.tenant.id),
      of(4, 'restart'),
      of(5, 'start'),
      of(6, 'start'),
    ];
    const plan = decide(world({ entries: [one, other], messages }));
    const outcomes = plan.messages.map(({ id, outcome, detail }) => [id, outcome, outcome === 'superseded' && detail]);
    expect(outcomes).toEqual([
      [1, 'superseded', 'by message 2 (start)'],
      [2, 'superseded', 'by message 4 (restart)'],
      [3, 'accepted', false],
      [4, 'accepted', false],
      [5, 'superseded', 'by message 6 (start)'],
      [6, 'accepted', false],
    ]);
  });

  it('whose tenant runs say at which version: what a failed upgrade restarts is where it was', () => {
    const one = entry({ ...failed, state: 'STARTED', code: null, reason: null, hostId: 'a', ordered: true });
    const slots = [{ ...slot('a', 'scheduler'), tenantId: one.tenant.id }];
    const messages = [message(1, 'restart', one.tenant.id, true)];
    const plan = decide(world({ entries: [one], hosts: [host('a')], slots, messages }));
    expect(plan.messages).toMatchObject([{ outcome: 'started', detail: 'at 1', settledAt: now }]);
  });
});

describe('a host that beats and does not answer an order', () => {
  it('is lost, but not where it says that it cannot', () => {
    const lost = (isUnsaid: boolean): string[] => {
      const one = entry({ ...failed, state: 'ALLOCATED', hostId: 'a', ordered: true, changedAt: at(-31) });
      const hosts = [{ ...host('a'), unsaid: isUnsaid ? [one.tenant.id] : [newId()] }];
      return decide(world({ entries: [one], hosts })).lost.map(({ id }) => id);
    };
    expect([lost(false), lost(true)]).toEqual([['a'], []]);
  });
});

describe('a host that does not beat', () => {
  it.each([
    { seconds: 7.9, mayJudge: true, lost: [] },
    { seconds: 8.1, mayJudge: true, lost: ['a'] },
    { seconds: 60, mayJudge: false, lost: [] },
  ])(
    'for $seconds s, by a launcher that was itself awake: $mayJudge, is lost: $lost',
    ({ seconds, mayJudge, lost }) => {
      const hosts = [{ ...host('a'), beatMs: at(-seconds).getTime() }];
      expect(decide(world({ hosts, mayJudge })).lost.map(({ id }) => id)).toEqual(lost);
    },
  );
});

describe('a host without a tenant', () => {
  it('is idle, but not while it keeps house, nor where it was started by hand', () => {
    const hosts = [host('a'), host('b'), { ...host('c'), onDemand: false }];
    const plan = decide(world({ hosts, slots: [slot('b', 'housekeeping')] }));
    expect(plan.idle.map(({ id }) => id)).toEqual(['a']);
  });
});
