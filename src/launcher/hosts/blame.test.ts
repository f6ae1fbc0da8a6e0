import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aloneSuspicion, judgeLoss, type Passenger } from './blame.ts';
import { type Guest, place, type Room, sparesWanted } from './placement.ts';

const lostMs = 100_000;
const passenger = (tenantId: string, secondsAgo: number, more: Partial<Passenger> = {}): Passenger => ({
  tenantId,
  suspicion: 0,
  steppedMs: lostMs - secondsAgo * 1_000,
  hangs: false,
  ...more,
});
const suspicions = (passengers: readonly Passenger[]): number[] =>
  [...judgeLoss(passengers, lostMs).values()].map(({ suspicion }) => suspicion);

describe('a lost host', () => {
  it.each<[title: string, passengers: Passenger[], suspicions: number[]]>([
    ['old tenants are suspected alike', [passenger('a', 60), passenger('b', 30)], [1, 1]],
    ['the newcomer beside old tenants is to be alone', [passenger('a', 60), passenger('b', 3)], [1, 2]],
    ['the newcomer beside new tenants is to be alone', [passenger('a', 4), passenger('b', 3)], [1, 2]],
    ['tenants that started together have no newcomer', [passenger('a', 0.6), passenger('b', 0.2)], [1, 1]],
    ['a start 10 s ago tells nothing', [passenger('a', 60), passenger('b', 10)], [1, 1]],
    [
      'a tenant that hangs is no newcomer, and hides none',
      [passenger('a', 60), passenger('b', 5), passenger('c', 1, { hangs: true })],
      [1, 2, 1],
    ],
    [
      'tenants that lost a host before are to be alone, whoever was still starting',
      [passenger('a', 2, { suspicion: 1 }), passenger('b', 0.5, { suspicion: 1 })],
      [2, 2],
    ],
    ['a tenant that was alone is suspected once more', [passenger('a', 1, { suspicion: 2 })], [3]],
  ])('%s', (_, passengers, expected) => {
    expect(suspicions(passengers)).toEqual(expected);
  });

  it('is blamed on a tenant that was alone in it, and on no other', () => {
    const blamed = (passengers: readonly Passenger[]): boolean[] =>
      [...judgeLoss(passengers, lostMs).values()].map(({ isBlamed }) => isBlamed);
    expect(blamed([passenger('a', 60)])).toEqual([true]);
    expect(blamed([passenger('a', 60), passenger('b', 1)])).toEqual([false, false]);
  });
});

interface Neighbour {
  readonly guest: Guest;
  steppedMs: number;
}

/** Tenants of one engine and their hosts. Each host that a placement misses comes up at once, as do those that stand by. */
class Street {
  readonly #neighbours: Map<string, Neighbour>;
  #hosts = 0;
  /** Hosts that tenants had to wait for after the last loss. */
  awaited = 0;
  rooms: Room[] = [];

  constructor(count: number) {
    const names = Array.from({ length: count }, (_, i) => `t${i}`);
    const base = { engine: '1', suspicion: 0, ownHost: false, isBlamed: false, failedAt: null };
    this.#neighbours = new Map(names.map((tenantId) => [tenantId, { guest: { ...base, tenantId }, steppedMs: 0 }]));
    this.#start([...this.#neighbours.values()].map(({ guest }) => guest));
    this.standBy();
  }

  /** As many empty hosts come up as are to stand by. */
  standBy(): void {
    const empty = this.rooms.filter(({ guests }) => guests.length === 0).length;
    this.#add((sparesWanted(this.rooms, Number.POSITIVE_INFINITY).get('1') ?? 0) - empty);
  }

  /** Restarts one where it is. */
  restart(tenantId: string, atMs: number): void {
    const neighbour = this.#neighbours.get(tenantId);
    if (neighbour !== undefined) neighbour.steppedMs = atMs;
  }

  with(tenantId: string): readonly Guest[] {
    return this.rooms.find(({ guests }) => guests.some((each) => each.tenantId === tenantId))?.guests ?? [];
  }

  /** The host of this tenant is lost. Its tenants take `delaysMs` to run again. Answers the tenants that are to blame. */
  lose(tenantId: string, atMs: number, delaysMs: readonly number[]): string[] {
    const lost = this.with(tenantId);
    const passengers = lost.map((guest) => {
      return { ...guest, steppedMs: this.#neighbours.get(guest.tenantId)?.steppedMs ?? 0, hangs: false };
    });
    const verdicts = judgeLoss(passengers, atMs);
    this.rooms = this.rooms.filter(({ guests }) => guests !== lost);
    this.awaited = 0;
    this.#start(lost.map((guest) => ({ ...guest, ...verdicts.get(guest.tenantId) })));
    for (const [i, guest] of lost.entries()) this.restart(guest.tenantId, atMs + (delaysMs[i] ?? 0));
    return [...verdicts].filter(([, { isBlamed }]) => isBlamed).map(([id]) => id);
  }

  #start(guests: readonly Guest[]): void {
    const { placed, missing } = place(guests, this.rooms, () => Number.POSITIVE_INFINITY);
    this.rooms = this.rooms.map((room) => ({
      ...room,
      guests: [...room.guests, ...guests.filter((guest) => placed.get(guest.tenantId) === room.hostId)],
    }));
    const added = missing.get('1') ?? 0;
    if (added === 0) return;
    this.#add(added);
    this.awaited += added;
    this.#start(guests.filter((guest) => !placed.has(guest.tenantId)));
  }

  #add(count: number): void {
    for (let i = 0; i < count; i++) this.rooms.push({ hostId: `h${++this.#hosts}`, engine: '1', guests: [] });
  }
}

describe('a tenant that ends its host again and again', () => {
  const restarts = fc.array(fc.record({ who: fc.nat(7), afterMs: fc.nat(20_000) }), { maxLength: 6 });
  const losses = fc.array(
    fc.record({
      restarts,
      afterMs: fc.nat(20_000),
      isSoon: fc.boolean(),
      delaysMs: fc.array(fc.nat(12_000), { minLength: 8, maxLength: 8 }),
    }),
    { minLength: aloneSuspicion, maxLength: 5 },
  );

  it('is alone after two losses, whoever starts when, and no other tenant is blamed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), losses, (count, strikes) => {
        const street = new Street(count);
        let nowMs = 0;
        for (const [i, { restarts: before, afterMs, delaysMs, isSoon }] of strikes.entries()) {
          if (!isSoon) street.standBy();
          for (const { who, afterMs: laterMs } of before) street.restart(`t${who % count}`, (nowMs += laterMs));
          const blamed = street.lose('t0', (nowMs += afterMs), delaysMs);
          expect(blamed.filter((id) => id !== 't0')).toEqual([]);
          if (i + 1 >= aloneSuspicion) expect(street.with('t0')).toHaveLength(1);
        }
      }),
    );
  });

  it('lets no tenant but the newcomer wait for a process, where hosts have come to stand by since the last loss', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 8 }), losses, (count, strikes) => {
        const street = new Street(count);
        let nowMs = 0;
        for (const { restarts: before, afterMs, delaysMs } of strikes) {
          for (const { who, afterMs: laterMs } of before) street.restart(`t${who % count}`, (nowMs += laterMs));
          const isShared = street.with('t0').length > 1;
          street.lose('t0', (nowMs += afterMs), delaysMs);
          if (isShared) expect(street.awaited).toBeLessThanOrEqual(1);
          street.standBy();
        }
      }),
    );
  });

  it('hits half of its neighbours at most by a second loss that follows before further hosts stand by', () => {
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 8 }), fc.nat(10_000), (count, afterMs) => {
        const street = new Street(count);
        street.lose('t0', 60_000 + afterMs, []);
        expect(street.with('t0').length).toBeLessThanOrEqual(Math.ceil(count / 2));
      }),
    );
  });
});
