import { describe, expect, it } from 'vitest';
import { type Guest, place as placeWithin, type Placements, type Room, sparesWanted } from './placement.ts';

let made = 0;
const guest = (more: Partial<Guest> = {}): Guest => ({
  tenantId: `t${++made}`,
  engine: '1',
  suspicion: 0,
  ownHost: false,
  isBlamed: false,
  failedAt: null,
  ...more,
});
const many = (count: number, more: Partial<Guest> = {}): Guest[] => Array.from({ length: count }, () => guest(more));
const room = (hostId: string, guests: readonly Guest[] = [], engine = '1'): Room => ({ hostId, engine, guests });
const place = (guests: readonly Guest[], rooms: readonly Room[], most = Number.POSITIVE_INFINITY): Placements =>
  placeWithin(guests, rooms, () => most);
const hostOf = (one: Guest, rooms: readonly Room[]) => place([one], rooms).placed.get(one.tenantId);

describe('placement', () => {
  it('gives a tenant to a host of its version, the emptiest', () => {
    expect(hostOf(guest({ engine: '2' }), [room('a'), room('b', many(3), '2'), room('c', many(2), '2')])).toBe('c');
    expect(hostOf(guest({ engine: '3' }), [room('a')])).toBeUndefined();
  });

  it('gives one that has just failed to another host, where there is one', () => {
    expect(hostOf(guest({ failedAt: 'a' }), [room('a'), room('b', many(3))])).toBe('b');
    expect(hostOf(guest({ failedAt: 'a' }), [room('a')])).toBe('a');
  });

  it('lets 256 tenants share a host', () => {
    const { placed, missing } = place(many(257), [room('a')]);
    expect(placed.size).toBe(256);
    expect(missing).toEqual(new Map([['1', 1]]));
  });

  const once = { suspicion: 1 };
  const blamed = { suspicion: 1, isBlamed: true };
  const twice = { suspicion: 2 };
  it.each<[who: string, Partial<Guest>, where: string, rooms: Room[], hostId: string | undefined]>([
    ['a trusted tenant', {}, 'with trusted tenants, not the one that stands by', [room('a', many(3)), room('b')], 'a'],
    [
      'a trusted tenant',
      {},
      'that is empty, where suspects have the other',
      [room('a', many(1, once)), room('b')],
      'b',
    ],
    ['a trusted tenant', {}, 'of its own, where suspects have all', [room('a', many(2, once))], undefined],
    ['a suspect', once, 'that is empty', [room('a', many(3)), room('b', many(2, once)), room('c')], 'c'],
    ['a suspect', once, 'with the fewest suspects', [room('a', many(3, once)), room('b', many(2, once))], 'b'],
    ['a suspect', once, 'of its own, where trusted tenants have all', [room('a', many(3))], undefined],
    ['a suspect', once, 'of its own, where a blamed tenant has the other', [room('a', many(1, blamed))], undefined],
    ['a blamed tenant', blamed, 'that is empty', [room('a', many(2, once)), room('b')], 'b'],
    ['a blamed tenant', blamed, 'of its own', [room('a', many(2, once))], undefined],
    ['a tenant that is suspected twice', twice, 'that is empty', [room('a', many(1, twice)), room('b')], 'b'],
    ['a tenant that is suspected twice', twice, 'of its own', [room('a', many(1, twice))], undefined],
  ])('gives %s %j a host %s', (_, more, __, rooms, hostId) => {
    expect(hostOf(guest(more), rooms)).toBe(hostId);
  });

  it('starts all tenants of a lost host in the one that stands by, where nobody knows who was to blame', () => {
    const { placed, missing } = place(many(4, { suspicion: 1 }), [room('a', many(3)), room('b')]);
    expect([...placed.values()]).toEqual(['b', 'b', 'b', 'b']);
    expect(missing.size).toBe(0);
  });

  it('asks for one host for all of them where none stands by', () => {
    expect(place(many(4, { suspicion: 1 }), []).missing).toEqual(new Map([['1', 1]]));
  });

  it('spreads them over the hosts that stand by', () => {
    const { placed } = place(many(4, { suspicion: 1 }), [room('a'), room('b')]);
    expect([...placed.values()].toSorted()).toEqual(['a', 'a', 'b', 'b']);
  });

  it.each(['a trusted tenant', 'a suspect', 'a tenant that is suspected twice'])(
    'gives %s an empty host in which no suspect has run, where there is one',
    (who) => {
      const one = guest({
        suspicion: ['a trusted tenant', 'a suspect'].includes(who) ? Number(who === 'a suspect') : 2,
      });
      const tainted = { ...room('a'), hadSuspect: true };
      expect(hostOf(one, [tainted, room('b')])).toBe('b');
      expect(hostOf(one, [tainted])).toBe('a');
    },
  );

  it('separates them after a second loss', () => {
    const { placed, missing } = place(many(4, { suspicion: 2 }), [room('a'), room('b')]);
    expect([...placed.values()]).toEqual(['a', 'b']);
    expect(missing).toEqual(new Map([['1', 2]]));
  });

  it('lets a blamed tenant wait for a host of its own; its neighbours come first', () => {
    const villain = guest({ suspicion: 1, isBlamed: true });
    const { placed, missing } = place([villain, ...many(3)], [room('spare')]);
    expect([...placed.values()]).toEqual(['spare', 'spare', 'spare']);
    expect(placed.has(villain.tenantId)).toBe(false);
    expect(missing).toEqual(new Map([['1', 1]]));
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

/** Hosts that run tenants of one engine, as many as may be, until one of them is lost. */
class Fleet {
  readonly #most: number;
  rooms: Room[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  start(guests: readonly Guest[]): void {
    const { missing } = place(guests, this.rooms, this.#most);
    const added = Array.from({ length: missing.get('1') ?? 0 }, () => room(`host ${++made}`));
    const open = [...this.rooms, ...added];
    const { placed } = place(guests, open, this.#most);
    this.rooms = open.map((each) => ({
      ...each,
      guests: [...each.guests, ...guests.filter(({ tenantId }) => placed.get(tenantId) === each.hostId)],
    }));
  }

  with(tenantId: string): Room {
    const found = this.rooms.find(({ guests }) => guests.some((each) => each.tenantId === tenantId));
    if (found === undefined) throw new Error(`${tenantId} has no host`);
    return found;
  }

  lose({ hostId, guests }: Room): void {
    this.rooms = this.rooms.filter((each) => each.hostId !== hostId);
    this.start(guests.map((each) => ({ ...each, suspicion: each.suspicion + 1 })));
    this.#standBy();
  }

  get used(): Room[] {
    return this.rooms.filter(({ guests }) => guests.length > 0);
  }

  /** As many as are wanted, and no more. */
  #standBy(): void {
    const spares = sparesWanted(this.rooms, this.#most).get('1') ?? 0;
    this.rooms = [...this.used, ...Array.from({ length: spares }, () => room(`host ${++made}`))];
  }
}

describe('where there may be only so many hosts', () => {
  it.each([
    [2, 200, 10],
    [4, 200, 6],
    [8, 200, 5],
    [4, 7, 4],
    [3, 900, 7],
  ])('of %i hosts, one tenant among %i that ends its host is alone after %i losses at most', (most, count, losses) => {
    const guests = many(count);
    for (const guilty of [guests[0], guests[count >> 1], guests[count - 1]]) {
      const id = guilty?.tenantId ?? '';
      const fleet = new Fleet(most);
      fleet.start(guests);
      let lost = 0;
      for (; fleet.with(id).guests.length > 1; lost++) {
        expect(lost, `${fleet.with(id).guests.length} are with it`).toBeLessThan(losses);
        fleet.lose(fleet.with(id));
        const limit = Math.max(most, Math.ceil(count / 256));
        expect(fleet.used.length).toBeLessThanOrEqual(limit);
        expect(fleet.rooms.flatMap((each) => each.guests)).toHaveLength(count);
      }
      fleet.lose(fleet.with(id));
      expect(fleet.with(id).guests, 'and stays so').toHaveLength(1);
    }
  });

  it('that are all lost again and again, there are never more of them', () => {
    const fleet = new Fleet(4);
    fleet.start(many(200));
    for (let times = 0; times < 9; times++) {
      const guests = fleet.rooms.flatMap((each) => each.guests);
      fleet.rooms = [];
      fleet.start(guests.map((each) => ({ ...each, suspicion: each.suspicion + 1 })));
      const sizes = fleet.rooms.map((each) => each.guests.length);
      expect(sizes.reduce((sum, size) => sum + size)).toBe(200);
      expect(sizes.length).toBeLessThanOrEqual(4);
    }
  });

  it('one that is to have its own has it all the same, and nobody is put into it', () => {
    const own = guest({ ownHost: true });
    const { placed, missing } = place([own, guest()], [room('a', many(32, { suspicion: 1 }))], 1);
    expect([...placed.values()]).toEqual(['a']);
    expect(missing).toEqual(new Map([['1', 1]]));
    expect(place(many(1), [room('a', [own])], 1).placed.size).toBe(0);
  });

  it('there are as many as it takes for tenants whom nobody suspects', () => {
    expect(place(many(1_000), [], 2).missing).toEqual(new Map([['1', 4]]));
  });
});

describe('the host that stands by', () => {
  const suspects = many(4, { suspicion: 1 });
  it.each<[what: string, Room[], most: number, wanted: [string, number][]]>([
    ['one where two tenants share a host', [room('a', many(2)), room('b', many(1), '2')], 9, [['1', 1]]],
    [
      'two where more share a host',
      [room('a', many(3)), room('b', many(200), '2')],
      9,
      [
        ['1', 2],
        ['2', 2],
      ],
    ],
    ['none where each tenant has a host', [room('a', many(1)), room('b', many(1))], 9, []],
    ['one for each of the suspects that share a host', [room('a', suspects), room('b', many(2))], 9, [['1', 4]]],
    ['no more than there may be hosts', [room('a', suspects), room('b', many(2))], 4, [['1', 2]]],
    ['one where there are as many hosts as there may be', [room('a', suspects), room('b', many(2))], 2, [['1', 1]]],
    [
      'hosts that tenants have for themselves do not count',
      [room('a', suspects), room('b', many(1, { ownHost: true }))],
      4,
      [['1', 3]],
    ],
  ])('is wanted: %s', (_, rooms, most, wanted) => {
    expect(sparesWanted(rooms, most)).toEqual(new Map(wanted));
  });
});
