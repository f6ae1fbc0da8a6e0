/**
 * Several couriers on one tenant, of which some die or freeze while subscriptions change and receivers fail. Nothing may be
 * missing (I7), each strand is in order, and one batch id always has the same bytes. Nothing is left over (I8).
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { Courier } from '../../contract/bus.ts';
import { deadlineIn } from '../../kernel/service.ts';
import { newId } from '../../kernel/id.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import { postgresErrands } from '../../errands/postgres.ts';
import { postgresBusStore } from '../postgres/store.ts';
import type { BusStore } from '../store.ts';
import { many, TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../../test/harness/bus-receiver.ts';
import { HandTime } from '../../../test/harness/hand-time.ts';
import { until } from '../../../test/harness/until.ts';
import { Random } from '../../../test/simulation/random.ts';

let bus: TestBus | undefined;
let receiver: BusReceiver | undefined;

const running = new Set<Courier>();

afterEach(async () => {
  await Promise.all([...running].map((courier) => courier.stop(deadlineIn(3_000))));
  running.clear();
  await bus?.close();
  await receiver?.close();
});

/** A courier whose calls of the store never return once it is dead, and wait while it is frozen. */
async function startMortal(world: TestBus, time: HandTime) {
  const id = newId();
  const gate = { isDead: false, frozen: Promise.resolve() };
  const guard = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (from, name) => {
        const call: unknown = Reflect.get(from, name);
        if (typeof call !== 'function') return call;
        return async (...args: unknown[]) => {
          const never = new Promise(() => {});
          await (gate.isDead ? never : gate.frozen);
          const result: unknown = await Reflect.apply(call, from, args);
          await (gate.isDead ? never : gate.frozen);
          return gate.isDead ? never : result;
        };
      },
    });
  const db = onPool(world.ctx.pool);
  const store: BusStore = guard(postgresBusStore(db, id));
  const errands = guard(postgresErrands(db));
  const courier = world.makeCourier({ id, store, errands, isMortal: true });
  running.add(courier);
  await courier.start();
  return {
    kill: () => {
      running.delete(courier);
      gate.isDead = true;
    },
    freeze: () => {
      let thaw = (): void => {};
      gate.frozen = new Promise((resolve) => {
        thaw = resolve;
      });
      return () => thaw();
    },
    time,
  };
}

describe('several couriers', () => {
  it.each([1, 2, 3])('deliver everything in order, whoever dies or freezes (seed %i)', async (seed) => {
    const random = new Random(`rivals ${seed}`);
    const time = new HandTime('2026-11-18T00:00:00Z');
    const world = await TestBus.make(time);
    bus = world;
    const sink = await makeBusReceiver();
    receiver = sink;
    sink.reply = () => (random.chance(0.1) ? random.pick([500, 'reset', 503] as const) : 204);
    const ids: string[] = [];
    const expected = new Map<string, number[]>();
    for (let i = 0; i < 4; i++) {
      const strands = i === 3 ? 3 : 1;
      const options = {
        callback: `${sink.url}/${i}`,
        topics: [1 + (i % 2)],
        max: random.int(1, 9),
        windowMs: 50 * i,
        strands,
      };
      const id = await world.subscribe(options);
      ids.push(id);
      expected.set(`/${i}`, []);
    }
    let couriers = [await startMortal(world, time), await startMortal(world, time), await startMortal(world, time)];
    const topicsOf = ids.map((_, i) => 1 + (i % 2));
    const keys = new Map<number, number>();
    for (let round = 0; round < 40; round++) {
      const events = many(random.int(1, 15), () => ({ topic: random.int(1, 2), keyHash: random.int(0, 9) }));
      const seqs = await world.publish(events);
      seqs.forEach((seq, n) => {
        keys.set(seq, events[n]?.keyHash ?? 0);
        topicsOf.forEach((topic, i) => {
          if (topic === events[n]?.topic) expected.get(`/${i}`)?.push(seq);
        });
      });
      if (random.chance(0.15)) {
        const i = random.int(0, 3);
        const strands = i === 3 ? random.int(1, 4) : 1;
        const topic = topicsOf[i] ?? 1;
        await world.change(ids[i] ?? '', {
          callback: `${sink.url}/${i}`,
          topics: [topic],
          max: random.int(1, 9),
          windowMs: random.int(0, 200),
          strands,
        });
      }
      if (random.chance(0.15)) {
        const [victim, ...others] = couriers;
        victim?.kill();
        couriers = [...others, await startMortal(world, time)];
      }
      if (random.chance(0.1)) {
        const thaw = random.pick(couriers).freeze();
        time.advance(12_000);
        setTimeout(thaw, 30);
      }
      time.advance(random.int(0, 300));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(
      'nothing is queued',
      async () => {
        time.advance(500);
        world.ctx.hints.send('bus');
        const { n, fanned } = await world.db.one<{ n: number; fanned: boolean }>(sql`
          select ((select sum(queued) from reader) + (select count(*) from errand))::bigint as n,
                 (select fanned from bus_state) = (select max(seq) from bus_event) as fanned`);
        return n === 0 && fanned;
      },
      30_000,
    );
    const bodies = new Map<string, string>();
    for (const { id, body } of sink.received) {
      expect(bodies.get(id) ?? body, id).toBe(body);
      bodies.set(id, body);
    }
    for (const [i, id] of ids.entries()) {
      const all = expected.get(`/${i}`) ?? [];
      const accepted = sink.received.filter(({ path, status }) => path === `/${i}` && status === 204);
      const first = [...new Set(accepted.flatMap(({ seqs }) => seqs))];
      expect(
        first.toSorted((a, b) => a - b),
        `nothing missing of ${i}`,
      ).toEqual(all);
      const ordered =
        i === 3 ? [...new Set(keys.values())].map((key) => first.filter((seq) => keys.get(seq) === key)) : [first];
      for (const list of ordered) expect(list, `order of ${i}`).toEqual(list.toSorted((a, b) => a - b));
      const sent = (await world.readers(id)).reduce((sum, reader) => sum + reader.sent, 0);
      expect(sent, `sent of ${i}`).toBe(all.length);
    }
  });
});
