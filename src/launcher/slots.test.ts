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
  ...more,
});
describe('slots', () => {
  it('slots are granted to schedulers in the order of their requests', () => {
    const rows = [
      slot('late', { askedAt: at(-1) }),
      slot('early', { askedAt: at(-2) }),
      slot('runs', { grantedAt: at(-9) }),
    ];
    expect(new Slots(rows, 1, now).grant()).toEqual([]);
    expect(new Slots(rows, 2, now).grant()).toEqual(['early']);
    expect(new Slots(rows, 4, now).grant()).toEqual(['early', 'late']);
    expect(new Slots(rows, 1, now).positions()).toEqual(
      new Map([
        ['early', 1],
        ['late', 2],
      ]),
    );
  });

  it('a second request or release of a slot changes nothing', () => {
    const slots = new Slots([], 9, now);
    slots.ask('a');
    slots.ask('a');
    expect(slots.changes().added).toMatchObject([{ tenantId: 'a', grantedAt: null, askedAt: now }]);
    slots.release('a');
    slots.release('a');
    expect(slots.changes()).toEqual({ removed: [], added: [], changed: [] });
  });

  it('slots of tenants that may hold none are freed', () => {
    const slots = new Slots([slot('a', { grantedAt: at(-8) }), slot('b', { grantedAt: at(-8) })], 9, now);
    slots.free((tenantId) => tenantId !== 'b');
    expect(slots.changes().removed.map(({ id }) => id)).toEqual(['b']);
  });

  it('after the limit was lowered, the newest schedulers are surplus; the launcher keeps its slot', () => {
    const rows = [
      slot('l', { kind: 'launcher', tenantId: null, holder: 'l', grantedAt: at(-99) }),
      slot('old', { grantedAt: at(-9) }),
      slot('new', { grantedAt: at(-1) }),
      slot('mid', { grantedAt: at(-5) }),
    ];
    const surplus = (limit: number, stays: (tenantId: string) => boolean = () => true) =>
      new Slots(rows, limit, now).surplus(stays);
    expect(surplus(4)).toEqual([]);
    expect(surplus(3)).toEqual(['new']);
    expect(surplus(2)).toEqual(['new', 'mid']);
    expect(surplus(0)).toEqual(['new', 'mid', 'old']);
    expect(
      surplus(3, (tenantId) => tenantId !== 'new'),
      'one is already ending',
    ).toEqual([]);
  });

  it('the launcher takes its own slot whatever the limit is, and takes over its predecessor’s', () => {
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
