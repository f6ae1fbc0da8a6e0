import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import type { TakenErrand } from './contract.ts';
import { postgresErrands } from './postgres.ts';
import { ReadyFloor, type Sight } from './ready-floor.ts';

const sight = (rest: Partial<Sight>): Sight => ({
  lastId: null,
  passed: null,
  isSettled: false,
  horizon: '7',
  ...rest,
});

describe('the floor of acquires', () => {
  /** After the look with which each floor begins. */
  const begun = (): ReadyFloor => {
    const floor = new ReadyFloor();
    floor.begin(0).note(sight({ lastId: 20, horizon: '5' }), 1);
    return floor;
  };

  it('moves only once the transactions of the acquire before have ended', () => {
    const floor = begun();
    const { start, note } = floor.begin(10);
    expect(start).toEqual({ floor: 0, horizon: '5' });
    note(sight({ lastId: 30 }), 11);
    floor.begin(20).note(sight({ lastId: 40, isSettled: true }), 21);
    expect(floor.begin(30).start).toEqual({ floor: 20, horizon: '7' });
  });

  it('does not pass an errand that was left, nor one beyond a full batch', () => {
    const floor = begun();
    floor.begin(10).note(sight({ lastId: 15, passed: 15, isSettled: true }), 11);
    expect(floor.begin(20).start.floor).toBe(15);
  });

  it('stays where it is if nothing more was found', () => {
    const floor = begun();
    floor.begin(10).note(sight({ isSettled: true }), 11);
    floor.begin(20).note(sight({}), 21);
    expect(floor.begin(30).start).toEqual({ floor: 20, horizon: null });
  });

  it('passes a transaction that stays open for a second, and then looks from the first row each second', () => {
    const floor = begun();
    floor.begin(1_001).note(sight({ lastId: 30 }), 1_001);
    expect(floor.begin(1_100).start.floor).toBe(0);
    expect(floor.begin(1_200).start.floor).toBe(20);
    expect(floor.begin(2_099).start.floor).toBe(20);
  });

  it('looks from the first row every ten seconds', () => {
    const floor = begun();
    floor.begin(10).note(sight({ isSettled: true }), 11);
    expect(floor.begin(9_999).start.floor).toBe(20);
    expect(floor.begin(10_000).start.floor).toBe(0);
  });

  it('looks less often if a look takes long', () => {
    const floor = new ReadyFloor();
    floor.begin(0).note(sight({ lastId: 20 }), 1_000);
    floor.begin(1_000).note(sight({ isSettled: true }), 1_001);
    expect(floor.begin(19_999).start.floor).toBe(20);
    expect(floor.begin(20_000).start.floor).toBe(0);
  });
});

describe('errands that are committed late', () => {
  const worker = newId();
  let database: TenantDatabase;
  beforeAll(async () => {
    database = await makeTenantDatabase();
  });
  beforeEach(async () => {
    await database.db.exec(sql`delete from errand`);
    await database.db.exec(sql`delete from errand_hold`);
  });
  afterAll(() => database.close());

  const keysOf = (taken: readonly TakenErrand[]): string[] => taken.map(({ key }) => key);

  it('are taken, however many were taken and finished before', async () => {
    const errands = postgresErrands(database.db);
    const take = () => errands.acquire('main', worker, 2, Date.now());
    await database.db.transaction(async (tx) => {
      await postgresErrands(tx).push('main', [{ key: 'late' }]);
      for (let i = 0; i < 5; i++) {
        await errands.push('main', [{ key: `a${i}` }, { key: `b${i}` }]);
        const taken = await take();
        expect(keysOf(taken)).toEqual([`a${i}`, `b${i}`]);
        await errands.ack('main', worker, taken);
      }
    });
    expect(keysOf(await take())).toEqual(['late']);
  });

  it('are taken if they were pushed again while an acquire met them, and forget that push', async () => {
    const errands = postgresErrands(database.db);
    const take = () => errands.acquire('main', worker, 10, Date.now());
    await errands.push('main', [{ key: 'one' }, { key: 'two' }]);
    await errands.push('main', [{ key: 'one' }]);
    await database.db.transaction(async (tx) => {
      await postgresErrands(tx).push('main', [{ key: 'one' }]);
      const taken = await take();
      expect(keysOf(taken)).toEqual(['two']);
      await errands.ack('main', worker, taken);
      expect(await take()).toEqual([]);
      expect(await take()).toEqual([]);
    });
    const taken = await take();
    expect(keysOf(taken)).toEqual(['one']);
    expect(await errands.ack('main', worker, taken)).toEqual(['one']);
    expect(await errands.counts('main')).toEqual({ scheduled: 0, ready: 0, pending: 0, poisoned: 0 });
  });

  it('an acquire touches no errand, and leaves nothing behind once all are finished', async () => {
    const errands = postgresErrands(database.db);
    const versions = () => database.db.rows(sql`select key, xmin::text, ctid::text from errand order by key`);
    await errands.push(
      'aux',
      Array.from({ length: 20 }, (_, i) => ({ key: `k${i}` })),
    );
    const before = await versions();
    const taken = await errands.acquire('aux', worker, 100, Date.now());
    expect(taken).toHaveLength(20);
    expect(await versions()).toEqual(before);
    await errands.ack('aux', worker, taken.slice(0, 5));
    await errands.ack('aux', worker, taken.slice(5));
    await errands.beat(worker, [], Date.now());
    expect(await database.db.rows(sql`select lease from errand_hold`)).toEqual([]);
  });
});
