import { array, assert, boolean, constantFrom, integer, property, record as recordOf, subarray } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Ask, choose, claimLimits, dealPlaces, type Portion, type Standing, sumPlaces } from './choose.ts';
import { TenantRecord, tenantTimes } from './tenant-record.ts';
import { TenantRecords } from './tenant-records.ts';

const now = 1_000_000;
const laneSet = 'none:default';

type Pace = 'known' | 'unknown' | 'slow' | 'paused';
function tenant(id: string, pace: Pace = 'known'): TenantRecord {
  const made = new TenantRecord(id, tenantTimes);
  if (pace === 'known') made.answeredInTime(now);
  if (pace === 'slow') made.answeredLate(now);
  if (pace === 'paused') made.failed(now);
  return made;
}

function poll(places: number, without: readonly string[] = []): Portion {
  return { poll: { takes: (id) => !without.includes(id) }, places };
}

function standing(more: Partial<Standing> = {}): Standing {
  const alone = { isConnecting: false, isOff: () => false, hasOthersAtWork: () => false };
  return { laneSet, now, asks: [], ...alone, ...more };
}

function askOf(made: TenantRecord, more: Partial<Ask> = {}): Ask {
  const ask = { tenant: made, laneSet, portions: [], atMs: now, patienceMs: 100, keepsPlaces: true, ...more };
  made.asks.set(ask.laneSet, ask);
  return ask;
}

const idsOf = (asks: readonly Ask[]): string[] => asks.map((ask) => ask.tenant.id);
const placesOf = (asks: readonly Ask[]): number[] => asks.map((ask) => sumPlaces(ask.portions));
const many = (count: number, pace?: Pace): TenantRecord[] =>
  Array.from({ length: count }, (_, i) => tenant(`${pace}${i}`, pace));

describe('tenants that are asked', () => {
  it.each([
    ['all queued tenants in order', standing(), ['a', 'b', 'c']],
    ['not those that are off', standing({ isOff: (id) => id === 'a' }), ['b', 'c']],
  ])('the asked tenants are %s', (_, state, expected) => {
    expect(
      idsOf(
        choose(
          ['a', 'b', 'c'].map((id) => tenant(id)),
          [poll(9)],
          state,
        ).asks,
      ),
    ).toEqual(expected);
  });

  it('a paused tenant is not asked until its pause is over', () => {
    const paused = tenant('a', 'paused');
    expect(choose([paused], [poll(1)], standing()).asks).toEqual([]);
    expect(idsOf(choose([paused], [poll(1)], standing({ now: now + 101 })).asks)).toEqual(['a']);
  });

  it('a tenant that no poll serves is not asked', () => {
    const { asks } = choose([tenant('a'), tenant('b')], [poll(4, ['a']), poll(2, ['a'])], standing());
    expect([idsOf(asks), placesOf(asks)]).toEqual([['b'], [6]]);
  });

  it('a tenant with a claim under way for the same lanes is not asked', () => {
    const [a, b] = [tenant('a'), tenant('b')];
    const asks = [askOf(a), askOf(b, { laneSet: 'process:default' })];
    expect(idsOf(choose([a, b], [poll(4)], standing({ asks })).asks)).toEqual(['b']);
  });

  it('at most 16 tenants are asked at once, and 16 slow ones besides', () => {
    const queue = [...many(20, 'slow'), ...many(20, 'known')];
    const { asks } = choose(queue, [poll(1_000)], standing());
    expect([asks.filter((ask) => ask.keepsPlaces).length, asks.length]).toEqual([16, 32]);
    const underWay = asks.map((ask) => askOf(ask.tenant, ask));
    expect(choose(queue, [poll(1_000)], standing({ asks: underWay })).asks).toEqual([]);
  });

  it('further slow tenants are asked once claims are stuck for a second, unless connections are short', () => {
    const stuck = many(16, 'slow').map((each) => askOf(each, { keepsPlaces: false, atMs: now - 1_001 }));
    const next = (isConnecting: boolean) =>
      choose([tenant('a', 'slow')], [poll(1)], standing({ asks: stuck, isConnecting }));
    expect(idsOf(next(false).asks)).toEqual(['a']);
    expect(next(true).asks).toEqual([]);
  });

  it('a tenant that may have no connection yet is asked for one set of lanes at a time', () => {
    const [known, unknown] = [tenant('known'), tenant('unknown', 'unknown')];
    const asks = [known, unknown].map((each) => askOf(each, { laneSet: 'process:default' }));
    expect(idsOf(choose([known, unknown], [poll(4)], standing({ asks })).asks)).toEqual(['known']);
  });

  it('few tenants without a connection are asked while connections are short', () => {
    const stuck = many(14, 'slow').map((each) => askOf(each, { keepsPlaces: false, atMs: now - 9_000 }));
    const queue = [...many(10, 'unknown'), ...many(3, 'known')];
    const count = (isConnecting: boolean) =>
      choose(queue, [poll(99)], standing({ asks: stuck, isConnecting })).asks.length;
    expect([count(false), count(true)]).toEqual([13, 2 + 3]);
  });
});

describe('patience', () => {
  it('patience is longer for a tenant that has answered in time, and no places are kept for a slow one', () => {
    const { asks } = choose(
      (['known', 'unknown', 'slow'] as const).map((pace) => tenant(pace, pace)),
      [poll(9)],
      standing(),
    );
    expect(asks.map(({ patienceMs, keepsPlaces }) => [patienceMs, keepsPlaces])).toEqual([
      [100, true],
      [25, true],
      [25, false],
    ]);
  });
});

describe('flooded tenants', () => {
  const others = { hasOthersAtWork: () => true };
  function flooded(isTaken: boolean): TenantRecord {
    const made = tenant('a');
    made.workedAt = now;
    made.noteFlood(laneSet, true);
    made.turn = { isTaken, reports: [], isWanted: false };
    return made;
  }

  it('a tenant is asked for at most 250 runs, evenly from all polls, while others are at work, and for any number when alone', () => {
    const free = [poll(1), poll(1_000), poll(1_000)];
    expect(choose([tenant('a')], free, standing(others)).asks[0]?.portions.map(({ places }) => places)).toEqual([
      1, 125, 124,
    ]);
    expect(placesOf(choose([tenant('a')], free, standing()).asks)).toEqual([1 + 969 + 969]);
  });

  it('a large claim after a large one for the same lanes waits for its turn while others are at work', () => {
    const { asks, postponed } = choose([flooded(true)], [poll(100)], standing(others));
    expect([asks, postponed.map(({ id }) => id)]).toEqual([[], ['a']]);
  });

  it.each([
    ['its turn is free', flooded(false), 100, standing(others)],
    ['it is alone', flooded(true), 100, standing()],
    ['the claim is for a few places', flooded(true), 25, standing(others)],
    [
      'the last large claim was for other lanes',
      flooded(true),
      100,
      standing({ ...others, laneSet: 'process:default' }),
    ],
    ['it had no run for five seconds', flooded(true), 100, standing({ ...others, now: now + 5_001 })],
  ])('a large claim does not wait for a turn when %s', (_, made, places, state) => {
    const { asks, postponed } = choose([made], [poll(places)], state);
    expect([idsOf(asks), postponed]).toEqual([['a'], []]);
  });
});

describe('dealPlaces', () => {
  it.each([
    [[8], 2, [[4], [4]]],
    [[7], 3, [[3], [2], [2]]],
    [[1], 3, [[1], [0], [0]]],
    [
      [1, 1, 1, 1],
      2,
      [
        [1, 0, 1, 0],
        [0, 1, 0, 1],
      ],
    ],
    [
      [3, 5],
      2,
      [
        [2, 2],
        [1, 3],
      ],
    ],
    [[8], 0, []],
  ])('the places %j are dealt between %i tenants as %j', (free, tenants, shares) => {
    expect(dealPlaces(free, tenants)).toEqual(shares);
  });

  it('each place is dealt once, and no two shares differ by more than one place', () => {
    assert(
      property(
        array(integer({ min: 0, max: 1_000 }), { maxLength: 20 }),
        integer({ min: 1, max: 20 }),
        (free, tenants) => {
          const shares = dealPlaces(free, tenants);
          const sums = shares.map((share) => share.reduce((sum, n) => sum + n, 0));
          expect(free.map((_, at) => shares.reduce((sum, share) => sum + (share[at] ?? 0), 0))).toEqual(free);
          expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});

describe('properties for all tenants and polls', () => {
  const paces = array(constantFrom<Pace>('known', 'unknown', 'slow', 'paused'), { maxLength: 40 });
  const worlds = recordOf({
    paces,
    polls: array(integer({ min: 1, max: 1_200 }), { minLength: 1, maxLength: 6 }),
    off: subarray(['0', '3', '5', '8']),
    isConnecting: boolean(),
    hasOthers: boolean(),
  });
  type World = typeof worlds extends { generate(...args: never[]): { value: infer V } } ? V : never;
  const chosen = ({ polls, off, isConnecting, hasOthers }: Omit<World, 'paces'>, queue: readonly TenantRecord[]) => {
    const free = polls.map((places) => poll(places));
    const isOff = (id: string): boolean => off.includes(id);
    return {
      free,
      asks: choose(queue, free, standing({ isOff, isConnecting, hasOthersAtWork: () => hasOthers })).asks,
    };
  };
  const tenantsOf = (all: readonly Pace[]): TenantRecord[] => all.map((pace, i) => tenant(`${i}`, pace));

  it('no poll is asked to take more than it has room for, and one place in 32 stays free', () => {
    assert(
      property(worlds, (world) => {
        const { free, asks } = chosen(world, tenantsOf(world.paces));
        for (const keepsPlaces of [true, false]) {
          const portions = asks.filter((ask) => ask.keepsPlaces === keepsPlaces).flatMap((ask) => ask.portions);
          for (const each of free) {
            const dealt = sumPlaces(portions.filter(({ poll: of }) => of === each.poll));
            expect(dealt).toBeLessThanOrEqual(each.places - Math.floor(each.places / claimLimits.sparePlaceIn));
          }
        }
      }),
    );
  });

  it('each tenant is asked at most once, in its order, for at least one place, and for 250 at most beside others', () => {
    assert(
      property(worlds, (world) => {
        const { asks } = chosen(world, tenantsOf(world.paces));
        for (const keepsPlaces of [true, false]) {
          const ids = asks.filter((ask) => ask.keepsPlaces === keepsPlaces).map((ask) => Number(ask.tenant.id));
          expect(ids).toEqual([...new Set(ids)].toSorted((x, y) => x - y));
        }
        for (const places of placesOf(asks)) {
          expect(places).toBeGreaterThan(0);
          if (world.hasOthers) expect(places).toBeLessThanOrEqual(claimLimits.sharedBatch);
        }
      }),
    );
  });

  it('slow, failing and disabled tenants take no place from the others (I11)', () => {
    assert(
      property(worlds, (world) => {
        const all = tenantsOf(world.paces);
        const sound = all.filter((each) => !world.off.includes(each.id) && !each.isSlow(now));
        const kept = chosen(world, all).asks.filter((ask) => ask.keepsPlaces);
        const alone = chosen(world, sound).asks;
        expect(kept.map((ask) => [ask.tenant.id, sumPlaces(ask.portions)])).toEqual(
          alone.map((ask) => [ask.tenant.id, sumPlaces(ask.portions)]),
        );
      }),
    );
  });

  it('a tenant is asked in its turn, regardless of the number of runs of the others', () => {
    assert(
      property(integer({ min: 1, max: 100 }), integer({ min: 1, max: 40 }), (tenants, places) => {
        const records = new TenantRecords();
        records.open(laneSet, [laneSet], now);
        for (let i = 0; i < tenants; i++) records.hint(`${i}`, now);
        const perRound = Math.min(places - Math.floor(places / 32), claimLimits.tenantsAtOnce, tenants);
        const asked: string[] = [];
        while (asked.length < 3 * tenants) {
          const { asks } = choose(records.queueOf(laneSet), [poll(places)], standing());
          for (const ask of asks) records.take(ask.tenant, laneSet, now);
          // each tenant fills all its places, and has more runs
          for (const ask of asks) records.putBack(ask.tenant, laneSet);
          asked.push(...idsOf(asks));
          expect(asks.length).toBe(perRound);
        }
        for (let i = 0; i < asked.length; i++) expect(asked[i]).toBe(`${i % tenants}`);
      }),
    );
  });
});
