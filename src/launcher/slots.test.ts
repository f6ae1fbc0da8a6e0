import { describe, expect, it } from 'vitest';
import { type Slot, Slots } from './slots.ts';

const now = new Date('2026-06-01T00:00:00Z');
const at = (seconds: number): Date => new Date(now.getTime() + seconds * 1_000);
const slot = (id: string, more: Partial<Slot> = {}): Slot => ({
  id,
  kind: 'scheduler',
  tenantId: id,
  holder: null,
  reason: 'scheduler',
  askedAt: at(-60),
  grantedAt: null,
  lent: false,
  ...more,
});
const housekeeping = (id: string, tenantId: string, askedAt: Date): Slot =>
  slot(id, { kind: 'housekeeping', tenantId, holder: 'host', reason: 'retention', askedAt });
const granted = (slots: Slots, served: ReadonlyMap<string, number> = new Map()): string[] =>
  slots.grant(served).map(({ id }) => id);

describe('slots', () => {
  it('go to schedulers in order of asking, then to housekeeping', () => {
    const rows = [
      housekeeping('h', 'x', at(-90)),
      slot('late', { askedAt: at(-1) }),
      slot('early', { askedAt: at(-2) }),
      slot('runs', { grantedAt: at(-9) }),
    ];
    expect(granted(new Slots(rows, 1, now))).toEqual([]);
    expect(granted(new Slots(rows, 2, now))).toEqual(['early']);
    expect(granted(new Slots(rows, 4, now))).toEqual(['early', 'late', 'h']);
    expect(new Slots(rows, 1, now).positions()).toEqual(
      new Map([
        ['early', 1],
        ['late', 2],
      ]),
    );
  });

  it('of schedulers that are coming back are none of housekeeping’s, but of other schedulers’', () => {
    const rows = [housekeeping('h', 'x', at(-90)), slot('runs', { grantedAt: at(-9) })];
    expect(new Slots(rows, 3, now).grant(new Map(), 2)).toEqual([]);
    expect(new Slots([...rows, slot('waits')], 3, now).grant(new Map(), 1)).toMatchObject([{ id: 'waits' }]);
    expect(new Slots(rows, 3, now).grant(new Map(), 1)).toMatchObject([{ id: 'h', lent: false }]);
  });

  it('go to the housekeeping of the tenant that was served longest ago, one of each in turn', () => {
    const rows = [
      housekeeping('a1', 'a', at(-9)),
      housekeeping('a2', 'a', at(-8)),
      housekeeping('b1', 'b', at(-7)),
      housekeeping('c1', 'c', at(-6)),
    ];
    const served = new Map([
      ['a', 50],
      ['b', 20],
    ]);
    expect(granted(new Slots(rows, 9, now), served)).toEqual(['c1', 'b1', 'a1', 'a2']);
  });

  describe('that schedulers hold all of', () => {
    const runs = (id: string, holder = 'host'): Slot => slot(id, { holder, grantedAt: at(-99) });
    const waits = (id: string, tenantId: string, seconds: number, holder = 'host'): Slot => ({
      ...housekeeping(id, tenantId, at(-seconds)),
      holder,
    });

    it('are lent to housekeeping that has waited for long: one of each host, of the tenant served longest ago', () => {
      const rows = [runs('a'), runs('b'), runs('c', 'other'), waits('a1', 'a', 25), waits('b1', 'b', 20)];
      const slots = new Slots([...rows, waits('c1', 'c', 30, 'other')], 3, now);
      const [first, second, ...rest] = slots.grant(new Map([['a', 50]]));
      expect([first, second]).toMatchObject([
        { id: 'c1', lent: true, grantedAt: now },
        { id: 'b1', lent: true },
      ]);
      expect(rest).toEqual([]);
      expect(granted(slots), 'the host has one').toEqual([]);
      expect(
        slots.surplus(() => true),
        'they take none',
      ).toEqual([]);
    });

    it.each([
      ['has not waited for long', [runs('a'), waits('a1', 'a', 19)]],
      ['has no scheduler that runs', [slot('a'), runs('b'), waits('a1', 'a', 60)]],
      ['has its scheduler in another host by now', [runs('a', 'other'), waits('a1', 'a', 60)]],
    ])('are not lent to one that %s', (_, rows) => {
      expect(granted(new Slots(rows, 1, now))).toEqual([]);
    });

    it('are lent to nobody else, and not while one is free', () => {
      const rows = [runs('a'), slot('b', { askedAt: at(-60), holder: 'host' }), waits('a1', 'a', 60)];
      expect(new Slots(rows, 3, now).grant(new Map()).map(({ id, lent }) => [id, lent])).toEqual([
        ['b', false],
        ['a1', false],
      ]);
      expect(granted(new Slots(rows, 1, now)).slice(1)).toEqual([]);
    });
  });

  it('are asked for once and given back whole', () => {
    const slots = new Slots([], 9, now);
    slots.ask('a');
    slots.ask('a');
    expect(slots.changes().added).toMatchObject([{ tenantId: 'a', grantedAt: null, askedAt: now }]);
    slots.release('a');
    slots.release('a');
    expect(slots.changes()).toEqual({ removed: [], added: [], changed: [] });
  });

  it('are freed when whoever has them is gone', () => {
    const rows = [
      { ...housekeeping('h', 'a', at(-9)), grantedAt: at(-8) },
      { ...housekeeping('k', 'a', at(-9)), holder: 'dead', grantedAt: at(-8) },
      slot('a', { grantedAt: at(-8) }),
      slot('b', { grantedAt: at(-8) }),
    ];
    const slots = new Slots(rows, 9, now);
    slots.free(
      (holder) => holder !== 'dead',
      (tenantId) => tenantId !== 'b',
    );
    expect(slots.changes().removed.map(({ id }) => id)).toEqual(['k', 'b']);
  });

  it('beyond a lowered limit are those of the newest schedulers; the launcher keeps its own, and none goes for housekeeping', () => {
    const rows = [
      slot('l', { kind: 'launcher', tenantId: null, holder: 'l', grantedAt: at(-99) }),
      slot('old', { grantedAt: at(-9) }),
      slot('new', { grantedAt: at(-1) }),
      slot('mid', { grantedAt: at(-5) }),
      { ...housekeeping('h', 'a', at(-9)), grantedAt: at(-0.5) },
    ];
    const surplus = (limit: number, stays: (tenantId: string) => boolean = () => true) =>
      new Slots(rows, limit, now).surplus(stays);
    expect(surplus(4)).toEqual([]);
    expect(surplus(3)).toEqual(['new']);
    expect(surplus(2)).toEqual(['new', 'mid']);
    expect(surplus(0)).toEqual(['new', 'mid', 'old']);
    expect(
      surplus(3, (tenantId) => tenantId !== 'new'),
      'one is on its way out',
    ).toEqual([]);
  });

  it('has the launcher take its own, whatever the limit is, and take over its predecessor’s', () => {
    const first = new Slots([], 0, now);
    first.keepLauncher('one');
    const [own] = first.changes().added;
    expect(own).toMatchObject({ kind: 'launcher', holder: 'one', grantedAt: now });
    const next = new Slots(own === undefined ? [] : [own], 0, at(9));
    next.keepLauncher('one');
    expect(next.changes()).toEqual({ removed: [], added: [], changed: [] });
    next.keepLauncher('two');
    expect(next.changes().changed).toMatchObject([{ id: own?.id, holder: 'two' }]);
  });
});
