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
  mostHosts: 9,
  keepsSpares: false,
  hostFaults: new Map(),
  ...more,
});

const slot = (holder: string, kind: Slot['kind']): Slot => ({
  id: newId(),
  kind,
  tenantId: newId(),
  holder,
  reason: 'scheduler',
  askedAt: at(-9),
  grantedAt: at(-8),
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

describe('a lost host', () => {
  const running = { ...failed, state: 'STARTED', code: null, hostId: 'a', ordered: true, failures: 0 } as const;
  const [old, other, recent] = [60, 60, 3].map((ago) => entry({ ...running, changedAt: at(-ago) })) as [
    LaunchEntry,
    LaunchEntry,
    LaunchEntry,
  ];
  const starting = entry({ ...running, state: 'ALLOCATED', changedAt: at(-60) });
  const ended = Number.NEGATIVE_INFINITY;
  const blame = (entries: readonly LaunchEntry[], beatMs = ended) => {
    const fresh = entries.map((each) => ({ ...each }));
    decide(world({ entries: fresh, hosts: [{ ...host('a'), beatMs }] }));
    return fresh.map(({ launch }) => [launch?.suspicion, launch?.failures]);
  };

  it.each([
    ['the only tenant is blamed', [old], [[1, 1]]],
    [
      'the tenant that was being started is blamed',
      [old, starting],
      [
        [0, 0],
        [1, 1],
      ],
    ],
    [
      'the tenant that was started last is blamed',
      [old, recent],
      [
        [0, 0],
        [1, 1],
      ],
    ],
    [
      'the tenant that was being started is blamed before one that was started lately',
      [old, recent, starting],
      [
        [0, 0],
        [0, 0],
        [1, 1],
      ],
    ],
    [
      'without such tenants all are suspected, and none is blamed',
      [old, other],
      [
        [1, 0],
        [1, 0],
      ],
    ],
  ])('%s', (_, entries, expected) => {
    expect(blame(entries)).toEqual(expected);
  });

  it('that was silent for a while is put down to the tenant that it was starting when it fell silent', () => {
    expect(blame([old, recent], at(-9).getTime())).toEqual([
      [0, 0],
      [1, 1],
    ]);
  });

  it('costs a tenant that is not blamed no pause: it asks for a host in the same turn', () => {
    const [innocent, guilty] = [{ ...old }, { ...starting }];
    const plan = decide(world({ entries: [innocent, guilty], hosts: [{ ...host('a'), beatMs: ended }] }));
    expect([innocent.launch?.state, guilty.launch?.state]).toEqual(['ALLOCATED', 'DISABLED']);
    expect(plan.looks.map(({ entry: { tenant } }) => tenant.id)).toEqual([innocent.tenant.id]);
  });
});

describe('the host that stands by', () => {
  const running = { ...failed, state: 'STARTED', code: null, hostId: 'a', ordered: true, failures: 0 } as const;
  const spares = (entries: readonly LaunchEntry[], hosts = [host('a')]) =>
    decide(world({ entries, hosts, keepsSpares: true }));

  it('is asked for where tenants share a host and all of them run', () => {
    expect(spares([entry(running), entry(running)]).missing).toEqual(new Map([['1', 1]]));
    expect(spares([entry(running)]).missing.size).toBe(0);
    expect(spares([entry(running), entry({ ...running, state: 'ALLOCATED' })]).missing.size).toBe(0);
  });

  it('stays though it has no tenant; a second one may go', () => {
    const plan = spares([entry(running), entry(running)], [host('a'), host('b'), host('c')]);
    expect([plan.missing.size, plan.idle.map(({ id }) => id)]).toEqual([0, ['c']]);
  });

  it('takes a suspect that shares a host with others', () => {
    const suspect = entry({ ...running, suspicion: 1 });
    spares([entry(running), suspect], [host('a'), host('b')]);
    expect(suspect.launch).toMatchObject({ state: 'ALLOCATED', ending: true });
  });
});

describe('a scheduler that has failed', () => {
  const crashed = { ...failed, code: 'crashed', retryAt: at(5) } as const;
  const slotsAfter = (launch: Launch): readonly string[] => {
    const [one, waiting] = [entry(launch), entry({ ...failed, state: 'ENABLED', code: 'no_slot', retryAt: null })];
    const held = { ...slot('a', 'scheduler'), tenantId: one.tenant.id, holder: null };
    const inLine = { ...slot('a', 'scheduler'), tenantId: waiting.tenant.id, grantedAt: null };
    decide(world({ entries: [one, waiting], slots: [held, inLine], limit: 2 }));
    return [one, waiting].map(({ launch: now }) => now?.state ?? '');
  };

  it('keeps its slot for three tries, though others wait for one', () => {
    expect([1, 2, 3].map((failures) => slotsAfter({ ...crashed, failures }))).toEqual(
      Array.from({ length: 3 }, () => ['DISABLED', 'ENABLED']),
    );
    expect(slotsAfter({ ...crashed, failures: 4 })).toEqual(['DISABLED', 'ALLOCATED']);
  });

  it('is started again in the slot that it has kept', () => {
    expect(slotsAfter({ ...crashed, failures: 2, retryAt: at(-1) })).toEqual(['ALLOCATED', 'ENABLED']);
  });
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

  const outcomesOf = (kinds: readonly MessageKind[], launch: Launch) => {
    const one = entry(launch);
    const messages = kinds.map((kind, i) => message(i + 1, kind, one.tenant.id, i === 0));
    const slots = [{ ...slot('a', 'scheduler'), tenantId: one.tenant.id }];
    const plan = decide(world({ entries: [one], messages, slots, hosts: [host('a')] }));
    const changed = new Map(plan.messages.map((each) => [each.id, each]));
    return messages.map(({ id, outcome }) => changed.get(id)?.outcome ?? outcome);
  };
  const running = { ...failed, state: 'STARTED', code: null, reason: null, hostId: 'a', ordered: true } as const;

  it('that want the same share their outcome', () => {
    expect(outcomesOf(['start', 'start', 'start'], running)).toEqual(['started', 'started', 'started']);
    expect(outcomesOf(['start', 'start', 'restart'], { ...failed })).toEqual(['accepted', 'accepted', 'accepted']);
  });

  it('are superseded: starts and restarts by a stop, a stop by a restart', () => {
    expect(outcomesOf(['start', 'restart', 'stop'], { ...failed })).toEqual(['superseded', 'superseded', 'stopped']);
    expect(outcomesOf(['stop', 'start'], { ...running, state: 'DISABLED', ordered: false, ending: true })).toEqual([
      null,
      'accepted',
    ]);
    expect(outcomesOf(['stop', 'restart'], { ...running, state: 'DISABLED', ordered: false, ending: true })).toEqual([
      'superseded',
      'accepted',
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
  it('is idle, but not where it was started by hand', () => {
    const plan = decide(world({ hosts: [host('a'), { ...host('c'), onDemand: false }] }));
    expect(plan.idle.map(({ id }) => id)).toEqual(['a']);
  });
});
