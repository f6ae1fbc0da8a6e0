/**
 * Checkpoints of a courier. `test/chaos/bus-walk.ts` kills processes there. Publishing and the outbox have their own, because other
 * roles pass them.
 */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: courierCheckpoints, checkpoint } = declareCheckpoints(
  // a page of the log is read, not counted for its readers
  'fanout.read',
  // counted and errands created, this courier does not know what it holds
  'fanout.done',
  // errands whose time has come are ready, and this courier has not taken any
  'couriers.readied',
  // errands are taken, their readers are not loaded
  'delivery.taken',
  // a reader is loaded, its events are not gathered
  'delivery.loaded',
  // a batch is gathered, but not closed
  'delivery.gathered',
  // a batch that is not full is closed, but not sent
  'delivery.closed',
  // an open batch waits for its window, its errand is put back
  'delivery.back',
  // a batch is sent, its answer is not stored
  'delivery.sent',
  // a refused batch is cut in halves, none is sent
  'delivery.halved',
  // the event after a refused one is sent, its answer is not stored
  'delivery.next',
  // an accepted batch is recorded
  'delivery.acked',
  // a failed attempt is recorded, its errand waits
  'delivery.failed',
  // a batch became a dead letter
  'delivery.dead',
  // a subscriber is disabled, because its receiver is gone
  'delivery.disabled',
  // an errand without work is removed
  'delivery.idle',
  // a change of strands is reached, others may be behind
  'delivery.barrier',
  // a batch of a replay is sent, its answer is not stored
  'replay.sent',
  // a dead letter is sent again, its answer is not stored
  'replay.letter',
  // a step of a replay is recorded
  'replay.settled',
  // errands of silent couriers came back
  'couriers.scrubbed',
  // what this courier holds is named
  'couriers.beat',
  // a page of the lifecycle log is read, not copied
  'relay.followed',
  // the page and the position are committed, but not announced
  'relay.copied',
  // the errand of the relay is removed
  'relay.ended',
  // a test is sent, and not noted
  'test.sent',
  // a test is noted, its errand is not removed
  'test.noted',
);
