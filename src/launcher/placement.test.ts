import { describe, expect, it } from 'vitest';
import { type Guest, place, type Room } from './placement.ts';

let made = 0;
const guest = (more: Partial<Guest> = {}): Guest => ({
  tenantId: `t${++made}`,
  engine: '1',
  suspicion: 0,
  ownHost: false,
  ...more,
});
const many = (count: number, more: Partial<Guest> = {}): Guest[] => Array.from({ length: count }, () => guest(more));
const room = (hostId: string, guests: readonly Guest[] = [], engine = '1'): Room => ({ hostId, engine, guests });
const hostOf = (one: Guest, rooms: readonly Room[]) => place([one], rooms).placed.get(one.tenantId);

describe('placement', () => {
  it('gives a tenant to a host of its version, the emptiest', () => {
    expect(hostOf(guest({ engine: '2' }), [room('a'), room('b', many(3), '2'), room('c', many(2), '2')])).toBe('c');
    expect(hostOf(guest({ engine: '3' }), [room('a')])).toBeUndefined();
  });

  it.each([
    [0, 256],
    [1, 32],
    [2, 4],
    [3, 1],
    [9, 1],
  ])('lets one whose host was lost %i times share a host with %i in all', (suspicion, capacity) => {
    const { placed, missing } = place(many(capacity + 1, { suspicion }), [room('a')]);
    expect(placed.size).toBe(capacity);
    expect(missing).toEqual(new Map([['1', 1]]));
  });

  it('puts no suspect among many, and not many around a suspect', () => {
    expect(hostOf(guest({ suspicion: 1 }), [room('a', many(32)), room('b', many(31))])).toBe('b');
    expect(hostOf(guest(), [room('a', many(32, { suspicion: 1 }))])).toBeUndefined();
  });

  it('gives one a host of its own, which stays its own', () => {
    expect(hostOf(guest({ ownHost: true }), [room('a', many(1))])).toBeUndefined();
    expect(hostOf(guest({ ownHost: true }), [room('a', many(1)), room('b')])).toBe('b');
    expect(hostOf(guest(), [room('b', many(1, { ownHost: true }))])).toBeUndefined();
  });

  it('counts how many hosts are missing, of each version', () => {
    const guests = [...many(300), ...many(2, { ownHost: true, engine: '2' }), ...many(1, { engine: '2' })];
    const { placed, missing } = place(guests, []);
    expect(placed.size).toBe(0);
    expect(missing).toEqual(
      new Map([
        ['1', 2],
        ['2', 3],
      ]),
    );
  });
});
