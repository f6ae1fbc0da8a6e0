/** The work of each kind of errand of the bus. */
import type { CourierContext } from '../../contract/bus.ts';
import type { Errands } from '../../errands/contract.ts';
import type { Db } from '../../kernel/sql.ts';
import { parseKey } from '../errand-keys.ts';
import { ReplayDelivery } from '../replays/replay-delivery.ts';
import { runRelay } from '../relay/relay.ts';
import type { DeliveryParts } from './delivery-parts.ts';
import type { ErrandWork } from './holdings.ts';
import { deliverTest } from './test-delivery.ts';
import { StrandDelivery } from './strand-delivery.ts';

export interface WorkParts {
  readonly ctx: CourierContext;
  readonly db: Db;
  readonly errands: Errands;
  readonly parts: DeliveryParts;
}

export function makeErrandWork({ ctx, db, errands, parts }: WorkParts): ErrandWork {
  return async ({ key, lease }, signals, bell) => {
    const work = parseKey(key);
    if (work === undefined) throw new Error(`this version does not know the errand ${key}`);
    if (work.kind === 'deliver') {
      const { subscriber, strand } = work;
      return new StrandDelivery(parts, { subscriber, strand, lease }, signals, bell).run();
    }
    if (work.kind === 'replay') {
      const held = { replay: work.replay, worker: ctx.courier.id, lease };
      return new ReplayDelivery(parts, db, held, signals).run();
    }
    if (work.kind === 'test')
      return deliverTest({ ctx, db, errands, parts }, { key, lease, subscriber: work.subscriber }, signals);
    return runRelay({ ctx, db, errands }, { key, lease }, signals);
  };
}
