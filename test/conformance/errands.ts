/**
 * What every driver of errands promises (`src/errands/contract.ts`), as tests. A driver's suite calls `describeErrands` with how
 * to open the errands of several processes on one store.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  errandLimits,
  type ErrandQueue,
  type Errands,
  type ErrandState,
  errandTimes,
  type HeldErrand,
  type TakenErrand,
} from '../../src/errands/contract.ts';
import { newId } from '../../src/kernel/id.ts';

export interface ErrandBench {
  /** The errands as another process sees them, on connections of its own. */
  open(): Promise<Errands>;
  /** Removes all errands and workers. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

const { mostLosses } = errandLimits;
const { unnamedMs, silentMs } = errandTimes;
const start = Date.UTC(2026, 0, 1);
const none: Readonly<Record<ErrandState, number>> = { scheduled: 0, ready: 0, pending: 0, poisoned: 0 };

export function describeErrands(name: string, makeBench: () => Promise<ErrandBench>): void {
  describe(`errands on ${name}`, () => {
    let bench: ErrandBench;
    let errands: Errands;
    let worker: string;
    beforeAll(async () => {
      bench = await makeBench();
      errands = await bench.open();
    });
    beforeEach(async () => {
      await bench.clear();
      worker = newId();
    });
    afterAll(() => bench.close());

    const push = (...keys: string[]): Promise<number> =>
      errands.push(
        'main',
        keys.map((key) => ({ key })),
      );
    const take = (most = 100, now = start, by = worker): Promise<TakenErrand[]> =>
      errands.acquire('main', by, most, now);
    const counts = (queue: ErrandQueue = 'main') => errands.counts(queue);
    const named = (held: readonly HeldErrand[]) => held.map((each) => ({ ...each, queue: 'main' as const }));
    /** A worker takes one errand and is never heard of again. */
    const lose = async (now: number): Promise<void> => {
      await errands.acquire('main', newId(), 1, now);
      await errands.scrub('main', now + 1, mostLosses);
    };

    describe('pushing', () => {
      it(`an errand on ${name} that is pushed after its end has a lease that no former one had`, async () => {
        await push('again');
        const [former] = await take();
        await errands.ack('main', worker, [former ?? { key: '', lease: 0 }]);
        await push('again');
        const [present] = await take();
        expect(present?.lease).toBeGreaterThan(former?.lease ?? 0);
        expect(await errands.ack('main', worker, [former ?? { key: '', lease: 0 }])).toEqual([]);
        expect(await counts()).toEqual({ ...none, pending: 1 });
      });

      it(`an errand on ${name} exists once, whatever its state`, async () => {
        expect(await push('ready', 'ready')).toBe(1);
        expect(await push('ready')).toBe(0);
        expect(await errands.push('main', [{ key: 'ready', runAt: start }])).toBe(0);
        expect(await counts()).toEqual({ ...none, ready: 1 });
        const held = await take();
        expect(await push('ready')).toBe(0);
        expect(await counts()).toEqual({ ...none, pending: 1 });
        await errands.nack(
          'main',
          worker,
          held.map((each) => ({ ...each, runAt: start + 1 })),
        );
        expect(await push('ready')).toBe(0);
        expect(await counts()).toEqual({ ...none, scheduled: 1 });
        await errands.promote('main', ['ready']);
        for (let i = 0; i < mostLosses; i++) await lose(start + i);
        expect(await counts()).toEqual({ ...none, poisoned: 1 });
        expect(await push('ready')).toBe(0);
        expect(await counts()).toEqual({ ...none, poisoned: 1 });
      });

      it(`the queues of errands on ${name} are independent`, async () => {
        await push('one');
        expect(await errands.push('aux', [{ key: 'one' }])).toBe(1);
        await errands.ack('main', worker, await take());
        expect([await counts('main'), await counts('aux')]).toEqual([none, { ...none, ready: 1 }]);
      });

      it(`a finished errand on ${name} can be pushed again`, async () => {
        await push('one');
        await errands.ack('main', worker, await take());
        expect(await counts()).toEqual(none);
        expect(await push('one')).toBe(1);
        expect(await take()).toMatchObject([{ key: 'one' }]);
      });

      it(`an errand on ${name} that is pushed while it is held runs once more after its ack`, async () => {
        await push('one', 'two');
        const held = await take();
        await push('one');
        await push('one');
        expect(await errands.ack('main', worker, held)).toEqual(held.map(({ key }) => key));
        expect(await counts()).toEqual({ ...none, ready: 1 });
        const again = await take();
        expect(again).toMatchObject([{ key: 'one', attempts: 0 }]);
        expect(again[0]?.lease).toBeGreaterThan(held[0]?.lease ?? 0);
        await errands.ack('main', worker, again);
        expect(await counts()).toEqual(none);
      });

      it(`an errand on ${name} keeps any text as its key`, async () => {
        const keys = ['["deliver",["a\\\\b",0]]', "it's {a,b}", 'naïve ☂ 𝄞', 'null', '', ' spaced "quoted" '];
        await push(...keys);
        const held = await take();
        expect(new Set(held.map(({ key }) => key))).toEqual(new Set(keys));
        expect(await errands.beat(worker, named(held), start + 60_000)).toEqual([]);
        expect(new Set(await errands.ack('main', worker, held))).toEqual(new Set(keys));
        expect(await counts()).toEqual(none);
      });

      it(`errands on ${name} accept empty batches`, async () => {
        expect(await errands.push('main', [])).toBe(0);
        expect(await errands.promote('main', [])).toBe(0);
        expect(await errands.revive('main', [])).toBe(0);
        expect(await errands.ack('main', worker, [])).toEqual([]);
        expect(await errands.nack('main', worker, [])).toEqual([]);
        expect(await errands.progress('main', worker, [])).toEqual([]);
        expect(await errands.beat(worker, [], start)).toEqual([]);
      });
    });

    describe('time and order', () => {
      it(`a scheduled errand on ${name} is taken once its time has come, and nextDue returns that time`, async () => {
        await errands.push('main', [
          { key: 'late', runAt: start + 2_000 },
          { key: 'soon', runAt: start + 1_000 },
        ]);
        expect(await errands.nextDue('main')).toBe(start + 1_000);
        expect(await errands.nextDue('aux')).toBeUndefined();
        expect(await errands.due('main', start + 999, 10)).toBe(0);
        expect(await take()).toEqual([]);
        expect(await errands.due('main', start + 1_000, 10)).toBe(1);
        expect(await take()).toMatchObject([{ key: 'soon' }]);
        expect(await errands.nextDue('main')).toBe(start + 2_000);
      });

      it(`due errands on ${name} become ready in order of their times, at most as many as asked for`, async () => {
        await errands.push(
          'main',
          [5, 3, 1, 4, 2].map((n) => ({ key: `k${n}`, runAt: start + n })),
        );
        expect(await errands.due('main', start + 10, 3)).toBe(3);
        expect((await take()).map(({ key }) => key)).toEqual(['k1', 'k2', 'k3']);
        expect(await errands.due('main', start + 10, 3)).toBe(2);
        expect((await take()).map(({ key }) => key)).toEqual(['k4', 'k5']);
      });

      it(`promote on ${name} makes scheduled errands ready, and no others`, async () => {
        await errands.push('main', [
          { key: 'a', runAt: start + 9e9 },
          { key: 'b', runAt: start + 9e9 },
        ]);
        await push('ready', 'held');
        await errands.acquire('main', worker, 2, start);
        expect(await errands.promote('main', ['a', 'ready', 'held', 'unknown', 'a'])).toBe(1);
        expect(await counts()).toEqual({ ...none, scheduled: 1, ready: 1, pending: 2 });
        expect(await take()).toMatchObject([{ key: 'a' }]);
      });

      it(`acquire on ${name} takes what has been ready for longest, and no errand twice`, async () => {
        for (const key of ['c', 'a', 'b']) await push(key);
        await errands.push('main', [{ key: 'd', runAt: start }]);
        const [first] = await take(1);
        expect(first).toMatchObject({ key: 'c', attempts: 0 });
        await errands.due('main', start, 10);
        await errands.nack('main', worker, [{ key: 'c', lease: first?.lease ?? 0, runAt: start }]);
        await errands.due('main', start, 10);
        expect((await take(2, start, newId())).map(({ key }) => key)).toEqual(['a', 'b']);
        expect((await take(9)).map(({ key }) => key)).toEqual(['d', 'c']);
        expect(await take()).toEqual([]);
      });
    });

    describe('leases', () => {
      it(`ack, nack and progress on ${name} have no effect without the lease`, async () => {
        await push('one');
        const [old] = await take(1);
        const stale = { key: 'one', lease: old?.lease ?? 0 };
        await errands.nack('main', worker, [{ ...stale, runAt: start }]);
        await errands.due('main', start, 1);
        const [held] = await take(1);
        for (const [by, wrong] of [
          [worker, stale],
          [newId(), { key: 'one', lease: held?.lease ?? 0 }],
          [worker, { key: 'other', lease: 1 }],
        ] as const) {
          expect(await errands.ack('main', by, [wrong])).toEqual([]);
          expect(await errands.nack('main', by, [{ ...wrong, runAt: start }])).toEqual([]);
          expect(await errands.progress('main', by, [wrong])).toEqual([]);
          expect(await errands.ack('aux', by, [wrong])).toEqual([]);
        }
        expect(await counts()).toEqual({ ...none, pending: 1 });
        expect(await errands.ack('main', worker, [stale, ...(held ? [held] : [])])).toEqual(['one']);
        expect(await counts()).toEqual(none);
      });

      it(`nack on ${name} counts an attempt if there is a reason, and none if the errand is given back`, async () => {
        await push('one');
        const runAt = start;
        for (const [reason, attempts] of [
          ['refused', 0],
          [undefined, 1],
          ['a \0 zero', 1],
        ] as const) {
          await errands.due('main', start, 1);
          const held = await take();
          expect(held).toMatchObject([{ key: 'one', attempts }]);
          await errands.nack(
            'main',
            worker,
            held.map((each) => ({ ...each, runAt, ...(reason === undefined ? {} : { reason }) })),
          );
        }
        await errands.due('main', start, 1);
        expect(await take()).toMatchObject([{ key: 'one', attempts: 2 }]);
      });
    });

    describe('losses', () => {
      it(`beat on ${name} returns what the worker has lost`, async () => {
        await push('a', 'b', 'c', 'd');
        const held = await take();
        await errands.ack('main', worker, held.slice(0, 1));
        await errands.nack('main', worker, [{ key: 'b', lease: held[1]?.lease ?? 0, runAt: start }]);
        const newer = { key: 'c', lease: (held[2]?.lease ?? 0) + 1 };
        const lost = await errands.beat(worker, named([...held, newer]), start + 1);
        expect(lost).toEqual(named([...held.slice(0, 2), newer]));
        expect(await errands.beat(newId(), named(held), start + 1)).toEqual(named(held));
      });

      it(`an errand on ${name} that its worker has not named for five seconds comes back`, async () => {
        await push('named', 'forgotten');
        const held = await take();
        const mine = named(held.filter(({ key }) => key === 'named'));
        await errands.beat(worker, named(held), start + 1_000);
        await errands.beat(worker, mine, start + 3_000);
        await errands.beat(worker, mine, start + 1_000 + unnamedMs - 1);
        expect(await counts()).toEqual({ ...none, pending: 2 });
        expect(await errands.beat(worker, mine, start + 1_000 + unnamedMs)).toEqual([]);
        expect(await counts()).toEqual({ ...none, ready: 1, pending: 1 });
        const back = await take();
        expect(back).toMatchObject([{ key: 'forgotten' }]);
        expect(await errands.ack('main', worker, held)).toEqual(['named']);
      });

      it(`an errand on ${name} that was taken a moment ago need not be named yet, nor one that is named again`, async () => {
        await push('early');
        const early = named(await take());
        await errands.beat(worker, [], start + 4_000);
        await push('fresh');
        const fresh = named(await take(1, start + 4_500));
        await errands.beat(worker, early, start + 4_999);
        await errands.beat(worker, fresh, start + 4_999 + unnamedMs - 1);
        expect(await counts()).toEqual({ ...none, pending: 2 });
      });

      it(`an errand on ${name} whose work dies with its worker five times is poisoned by beats, too`, async () => {
        await push('one');
        for (let i = 0; i < mostLosses; i++) {
          const at = start + i * 60_000;
          await take(1, at);
          await errands.beat(worker, [], at + unnamedMs);
        }
        expect(await counts()).toEqual({ ...none, poisoned: 1 });
      });

      it(`scrub on ${name} takes back what silent workers hold, and nothing else`, async () => {
        const [silent, beating, fresh] = [newId(), newId(), newId()];
        await push('a', 'b', 'c');
        await errands.push('aux', [{ key: 'x' }]);
        const [a] = await take(1, start, silent);
        const b = await take(1, start, beating);
        await errands.acquire('aux', silent, 1, start);
        await take(1, start + 8_000, fresh);
        await errands.beat(beating, named(b), start + 6_000);
        const silentBefore = start + 15_000 - silentMs;
        expect(await errands.scrub('main', silentBefore, mostLosses)).toBe(1);
        expect([await counts('main'), await counts('aux')]).toEqual([
          { ...none, ready: 1, pending: 2 },
          { ...none, pending: 1 },
        ]);
        expect(await errands.ack('main', silent, a ? [a] : [])).toEqual([]);
        expect(await take(9)).toMatchObject([{ key: a?.key }]);
        expect(await errands.scrub('aux', silentBefore, mostLosses)).toBe(1);
      });

      it(`scrub on ${name} takes back at once what a worker holds whose process is gone`, async () => {
        const [gone, beating] = [newId(), newId()];
        await push('a', 'b');
        const [a] = await take(1, start, gone);
        const b = await take(1, start, beating);
        await errands.beat(gone, named(a ? [a] : []), start);
        await errands.beat(beating, named(b), start);
        const silentBefore = start - silentMs;
        expect(await errands.scrub('main', silentBefore, mostLosses)).toBe(0);
        expect(await errands.scrub('main', silentBefore, mostLosses, [gone])).toBe(1);
        expect(await counts()).toEqual({ ...none, ready: 1, pending: 1 });
        expect(await errands.ack('main', gone, a ? [a] : [])).toEqual([]);
      });

      it(`a worker on ${name} that was idle for long is not silent when it takes an errand`, async () => {
        await push('one');
        await errands.ack('main', worker, await take());
        await push('two');
        await take(1, start + 3_600_000);
        expect(await errands.scrub('main', start + 3_600_000 - silentMs, mostLosses)).toBe(0);
      });

      it(`five losses in a row poison an errand on ${name}, and revive makes it ready again`, async () => {
        await push('bad', 'good');
        for (let i = 1; i < mostLosses; i++) await lose(start + i);
        await errands.ack(
          'main',
          worker,
          (await take()).filter(({ key }) => key === 'good'),
        );
        await errands.scrub('main', start + 1, mostLosses);
        for (let i = 1; i <= mostLosses; i++) await lose(start + i);
        expect(await take()).toEqual([]);
        expect(await counts()).toEqual({ ...none, poisoned: 1 });
        expect(await errands.poisoned('main')).toMatchObject([{ key: 'bad', losses: mostLosses }]);
        expect((await errands.poisoned('main'))[0]?.reason).toContain('lost');
        expect(await errands.poisoned('aux')).toEqual([]);
        expect(await errands.promote('main', ['bad'])).toBe(0);
        await push('other');
        expect(await errands.revive('main', ['bad', 'other', 'unknown'])).toBe(1);
        expect(await errands.poisoned('main')).toEqual([]);
        for (let i = 1; i < mostLosses; i++) await lose(start + i);
        expect((await counts()).poisoned).toBe(0);
      });

      it(`kills of a busy worker never poison an errand on ${name} that makes progress`, async () => {
        await push('one');
        const rescue: ((held: TakenErrand) => Promise<string[]>)[] = [
          (held) => errands.progress('main', worker, [held]),
          async (held) => {
            const kept = await errands.nack('main', worker, [{ ...held, runAt: start }]);
            await errands.due('main', start, 1);
            await take(1);
            return kept;
          },
        ];
        for (const advance of [...rescue, ...rescue]) {
          // with the one of the round before: one less than too many
          for (let i = 2; i < mostLosses; i++) await lose(start + i);
          const [held] = await take(1);
          expect(await advance(held ?? { key: '', lease: 0, attempts: 0 })).toEqual(['one']);
          await errands.scrub('main', start + 1, mostLosses);
        }
        expect(await counts()).toEqual({ ...none, ready: 1 });
      });

      it(`a beat is no progress on ${name}: an errand that hangs until its worker is killed is poisoned`, async () => {
        await push('one');
        for (let i = 0; i < mostLosses; i++) {
          const at = start + i * 60_000;
          const held = await take(1, at);
          await errands.beat(worker, named(held), at + 30_000);
          await errands.scrub('main', at + 59_000, mostLosses);
        }
        expect(await counts()).toEqual({ ...none, poisoned: 1 });
      });
    });
  });
}
