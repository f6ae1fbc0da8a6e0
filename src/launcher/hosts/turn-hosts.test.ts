/** Turns in which hosts are lost, stand by or are not needed any more. */
import { describe, expect, it } from 'vitest';
import { at, because, failedLaunch, makeEntry, makeHost, makeWorld } from '../../../test/harness/turns.ts';
import { newId } from '../../kernel/id.ts';
import type { LaunchEntry } from '../ledger.ts';
import { decide } from '../turn.ts';

describe('a tenant that is ending when its host is lost', () => {
  const suspicionOf = (phase: 'running' | 'ended'): number | undefined => {
    const ending = { ...failedLaunch, state: 'ALLOCATED', hostId: 'a', ending: true } as const;
    const report = { orderNo: 1, hostId: 'a', phase, reason: null } as const;
    const one = makeEntry({ ...ending, reason: because('stopping') });
    const hosts = [{ ...makeHost('a'), beatMs: Number.NEGATIVE_INFINITY }];
    const { changes } = decide(makeWorld({ entries: [{ ...one, report }], hosts }));
    return changes[0]?.launch.suspicion;
  };

  it('is suspected, unless it had ended', () => {
    expect([suspicionOf('running'), suspicionOf('ended')]).toEqual([1, 0]);
  });
});

describe('a lost host', () => {
  const running = { ...failedLaunch, state: 'STARTED', code: null, hostId: 'a', ordered: true, failures: 0 } as const;
  const [old, other] = [makeEntry({ ...running, changedAt: at(-60) }), makeEntry({ ...running, changedAt: at(-60) })];
  const starting = makeEntry({ ...running, state: 'ALLOCATED', changedAt: at(-1) });
  const ended = Number.NEGATIVE_INFINITY;
  const blame = (entries: readonly LaunchEntry[], beatMs = ended) => {
    const fresh = entries.map((each) => ({ ...each }));
    decide(makeWorld({ entries: fresh, hosts: [{ ...makeHost('a'), beatMs }] }));
    return fresh.map(({ launch }) => [launch?.suspicion, launch?.failures]);
  };

  it('pauses a tenant that was alone in it', () => {
    expect(blame([old])).toEqual([[1, 1]]);
  });

  it('pauses no tenant that shared it, not even one that was being started', () => {
    expect(blame([old, other, starting])).toEqual([
      [1, 0],
      [1, 0],
      [2, 0],
    ]);
  });

  it('is not put down to a tenant that hung', () => {
    const report = { orderNo: 1, hostId: 'a', phase: 'starting', reason: because('failing') } as const;
    expect(blame([old, { ...starting, report }])).toEqual([
      [1, 0],
      [1, 0],
    ]);
  });

  it('that was silent for a while is put down to the tenant that it had just started when it fell silent', () => {
    const newcomer = makeEntry({ ...running, changedAt: at(-15) });
    expect(blame([old, newcomer], at(-9).getTime())).toEqual([
      [1, 0],
      [2, 0],
    ]);
  });

  it('costs its tenants no pause: they are given to the host that stands by in the same turn, the newcomer waits for one', () => {
    const [innocent, newcomer] = [{ ...old }, { ...starting }];
    const hosts = [{ ...makeHost('a'), beatMs: ended }, makeHost('b')];
    const plan = decide(makeWorld({ entries: [newcomer, innocent], hosts }));
    expect(innocent.launch).toMatchObject({ state: 'ALLOCATED', ordered: true, hostId: 'b' });
    expect(newcomer.launch).toMatchObject({ state: 'ALLOCATED', ordered: false });
    expect([plan.looks, plan.missing]).toEqual([[], new Map([['1', 1]])]);
  });

  it('costs its tenants no pause: without a host that stands by, they are looked at in the same turn', () => {
    const tenants = [{ ...old }, { ...starting }];
    const plan = decide(makeWorld({ entries: tenants, hosts: [{ ...makeHost('a'), beatMs: ended }] }));
    expect(tenants.map(({ launch }) => launch?.state)).toEqual(['ALLOCATED', 'ALLOCATED']);
    expect(plan.looks.map(({ entry }) => entry.tenant.id)).toEqual(tenants.map(({ tenant }) => tenant.id));
  });
});

describe('the host that stands by', () => {
  const running = { ...failedLaunch, state: 'STARTED', code: null, hostId: 'a', ordered: true, failures: 0 } as const;
  const spares = (entries: readonly LaunchEntry[], hosts = [makeHost('a')]) =>
    decide(makeWorld({ entries, hosts, keepsSpares: true }));

  it('is asked for where tenants share a host and all of them run', () => {
    expect(spares([makeEntry(running), makeEntry(running)]).missing).toEqual(new Map([['1', 1]]));
    expect(spares([makeEntry(running)]).missing.size).toBe(0);
    expect(spares([makeEntry(running), makeEntry({ ...running, state: 'ALLOCATED' })]).missing.size).toBe(0);
  });

  it('stays though it has no tenant; a second one may go', () => {
    const plan = spares([makeEntry(running), makeEntry(running)], [makeHost('a'), makeHost('b'), makeHost('c')]);
    expect([plan.missing.size, plan.idle.map(({ id }) => id)]).toEqual([0, ['c']]);
  });

  it('is requested until each of the suspects that share a host has one, two at a time', () => {
    const suspect = { ...running, suspicion: 1 };
    const suspects = [makeEntry(suspect), makeEntry(suspect), makeEntry(suspect)];
    const plans = ['', 'b', 'bc', 'bcd'].map((ids) => spares(suspects, ['a', ...ids].map(makeHost)));
    expect(plans.map((plan) => plan.missing.get('1'))).toEqual([2, 2, 1, undefined]);
    expect(plans.at(-1)?.idle).toEqual([]);
  });

  it('is requested while suspects still start, because the second loss may follow at once', () => {
    const starting = { ...running, state: 'ALLOCATED', suspicion: 1 } as const;
    expect(spares([makeEntry(starting), makeEntry(starting)]).missing).toEqual(new Map([['1', 2]]));
  });

  it('is requested together with the host that a newcomer waits for', () => {
    const newcomer = makeEntry({ ...failedLaunch, state: 'ALLOCATED', suspicion: 2, failures: 0, retryAt: null });
    const finding = { kind: 'installed', version: '1', engine: { ok: true } } as const;
    const entries = [newcomer, makeEntry({ ...running, suspicion: 1 }), makeEntry({ ...running, suspicion: 1 })];
    const findings = new Map([[newcomer.tenant.id, finding]]);
    const plan = decide(makeWorld({ entries, hosts: [makeHost('a')], findings, keepsSpares: true }));
    expect(plan.missing).toEqual(new Map([['1', 2]]));
  });

  it('is not a host in which a suspect has run', () => {
    const tenants = [makeEntry(running), makeEntry(running)];
    const plan = spares(tenants, [makeHost('a'), { ...makeHost('b'), hadSuspect: true }]);
    expect([plan.missing.get('1'), plan.idle.map(({ id }) => id)]).toEqual([1, ['b']]);
  });

  it('does not take a suspect that runs', () => {
    const suspects = [makeEntry({ ...running, suspicion: 1 }), makeEntry({ ...running, suspicion: 2 })];
    spares(suspects, [makeHost('a'), makeHost('b'), makeHost('c')]);
    expect(suspects.map(({ launch }) => [launch?.state, launch?.ending])).toEqual([
      ['STARTED', false],
      ['STARTED', false],
    ]);
  });
});

describe('a host that beats and does not answer an order', () => {
  it('is lost, but not where it says that it cannot', () => {
    const lost = (isUnsaid: boolean): string[] => {
      const one = makeEntry({ ...failedLaunch, state: 'ALLOCATED', hostId: 'a', ordered: true, changedAt: at(-31) });
      const hosts = [{ ...makeHost('a'), unsaid: isUnsaid ? [one.tenant.id] : [newId()] }];
      return decide(makeWorld({ entries: [one], hosts })).lost.map(({ id }) => id);
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
      const hosts = [{ ...makeHost('a'), beatMs: at(-seconds).getTime() }];
      expect(decide(makeWorld({ hosts, mayJudge })).lost.map(({ id }) => id)).toEqual(lost);
    },
  );
});

describe('a host without a tenant', () => {
  it('is idle, but not where it was started by hand', () => {
    const plan = decide(makeWorld({ hosts: [makeHost('a'), { ...makeHost('c'), onDemand: false }] }));
    expect(plan.idle.map(({ id }) => id)).toEqual(['a']);
  });
});
