/**
 * What every driver of the broker promises (`src/broker/contract.ts`), as tests. A driver's suite calls `describeBroker`
 * with how to open two processes' brokers on one installation, and how to cut their connections.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broker } from '../../src/broker/contract.ts';
import type { Offer } from '../../src/contract/engine.ts';
import { newId } from '../../src/kernel/id.ts';
import { until } from '../harness/until.ts';

export interface BrokerBench {
  /** The broker of another process, as far as the driver can tell. */
  open(): Promise<Broker>;
  /** Ends every connection of every broker; they come back by themselves. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

/** A bench with the workers' side of the queues, and the faults of the server that holds them. */
export interface QueueBench extends BrokerBench {
  /** Consumes a lane as a worker does. Returns how to stop. */
  consume(lane: string, take: (tenantId: string, offers: readonly Offer[]) => void): Promise<() => Promise<void>>;
  /** Makes the server take no more messages. Returns how to end that. */
  block(): Promise<() => Promise<void>>;
}

type Heard = { readonly tenantId: string | undefined; readonly payload: unknown };

function hear(broker: Broker, kind: 'ready' | 'events' | 'cancel'): Heard[] {
  const heard: Heard[] = [];
  broker.onAny(kind, (tenantId, payload) => void heard.push({ tenantId, payload }));
  return heard;
}

export function describeBroker(name: string, makeBench: () => Promise<BrokerBench>): void {
  describe(`the ${name} broker`, () => {
    let bench: BrokerBench;
    let here: Broker;
    let there: Broker;
    beforeAll(async () => {
      bench = await makeBench();
      [here, there] = [await bench.open(), await bench.open()];
    });
    afterAll(() => bench.close());

    it(`the ${name} broker delivers a hint in its own process before send returns, and in another one soon`, async () => {
      const tenantId = newId();
      const [near, far] = [hear(here, 'ready'), hear(there, 'ready')];
      here.hintsOf(tenantId).send('ready', ['process:default']);
      expect(near).toEqual([{ tenantId, payload: ['process:default'] }]);
      await until('the other process hears it', () => far.length > 0 || undefined);
      expect(far).toEqual(near);
    });

    it(`the ${name} broker delivers a hint to listeners of its tenant and kind only`, async () => {
      const [mine, other] = [here.hintsOf(newId()), here.hintsOf(newId())];
      const heard: string[] = [];
      mine.on('events', () => void heard.push('events of mine'));
      mine.on('logs', () => void heard.push('logs of mine'));
      other.on('events', () => void heard.push('events of other'));
      mine.send('events');
      expect(heard).toEqual(['events of mine']);
    });

    it(`the ${name} broker delivers nothing to a removed listener`, () => {
      const hints = here.hintsOf(newId());
      let heard = 0;
      const leave = hints.on('events', () => void heard++);
      leave();
      hints.send('events');
      expect(heard).toBe(0);
    });

    it(`the ${name} broker carries the run that must be killed`, async () => {
      const far = hear(there, 'cancel');
      const run = { tenant: newId(), run: newId(), lease: 3 };
      here.hintsOf(run.tenant).send('cancel', run);
      await until('the other process hears it', () => far.length > 0 || undefined);
      expect(far).toEqual([{ tenantId: run.tenant, payload: run }]);
    });

    it(`the ${name} broker delivers a hint without its payload if that is too long`, async () => {
      const tenantId = newId();
      const far = hear(there, 'ready');
      const lanes = Array.from({ length: 1_000 }, (_, i) => `process:queue-${i}`);
      here.hintsOf(tenantId).send('ready', lanes);
      await until('the other process hears it', () => far.length > 0 || undefined);
      expect([lanes, undefined]).toContainEqual(far[0]?.payload);
    });

    it(`the ${name} broker calls every listener without a payload after a lost connection, and continues`, async () => {
      const tenantId = newId();
      const far = hear(there, 'ready');
      await bench.cut();
      await until(
        'it is called because it may have missed something',
        () => far.some((each) => each.tenantId === undefined) || undefined,
      );
      await until('hints arrive again', () => {
        here.hintsOf(tenantId).send('ready');
        return far.some((each) => each.tenantId === tenantId) || undefined;
      });
    });

    it(`the ${name} broker has no room in a lane without a consumer, and rejects what is published there`, async () => {
      const tenantId = newId();
      expect(here.room(tenantId, 'process:unserved')).toBe(0);
      await expect(here.publish(tenantId, 'process:unserved', [makeOffer()])).rejects.toThrow();
    });
  });
}

/** The tests of a driver with queues of its own. Its suite calls both functions. */
export function describeQueues(name: string, makeBench: () => Promise<QueueBench>): void {
  it(`the ${name} broker delivers confirmed offers in order to a consumer of the lane, and rejects others`, async () => {
    const bench = await makeBench();
    try {
      await checkQueues(await bench.open(), bench);
    } finally {
      await bench.close();
    }
  });
}

function makeOffer(): Offer {
  return { run: newId(), lease: 0, task: newId(), version: 1, priority: 'normal' };
}

async function checkQueues(broker: Broker, queues: QueueBench): Promise<void> {
  const [tenantId, lane] = [newId(), `process:${newId()}`];
  const taken: (readonly [string, string])[] = [];
  const stop = await queues.consume(
    lane,
    (tenant, offers) => void taken.push(...offers.map((o) => [tenant, o.run] as const)),
  );
  await until('the consumer makes room', () => broker.room(tenantId, lane) > 0 || undefined);
  const offers = Array.from({ length: 20 }, makeOffer);
  await broker.publish(tenantId, lane, offers);
  await until('all offers arrive', () => taken.length >= offers.length || undefined);
  expect(taken).toEqual(offers.map(({ run }) => [tenantId, run]));

  const unblock = await queues.block();
  await until('a blocked broker has no room', () => broker.room(tenantId, lane) === 0 || undefined);
  await expect(broker.publish(tenantId, lane, [makeOffer()])).rejects.toThrow();
  await unblock();
  await until('there is room again', () => broker.room(tenantId, lane) > 0 || undefined);

  await stop();
  await until('the lane has no consumer', () => broker.room(tenantId, lane) === 0 || undefined);
  await expect(broker.publish(tenantId, lane, [makeOffer()])).rejects.toThrow();
}
