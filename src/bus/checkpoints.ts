/**
 * Checkpoints of the bus. Publishing passes the first ones in a process of the role `api`, the outbox the last ones in a host; a
 * courier passes the others.
 */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: busCheckpoints, checkpoint } = declareCheckpoints(
  // events are valid, but not stored
  'publish.append',
  // events are committed, but no courier and no publisher knows it
  'publish.committed',
  // a page of the log is read, not counted for its readers
  'fanout.read',
  // counted and errands created, this courier does not know what it holds
  'fanout.done',
  // errands are taken, their readers are not loaded
  'delivery.taken',
  // a batch is gathered, but not closed
  'delivery.gathered',
  // a batch that is not full is closed, but not sent
  'delivery.closed',
  // a batch is sent, its answer is not stored
  'delivery.sent',
  // the event after a refused one is sent, its answer is not stored
  'delivery.next',
  // an accepted batch is recorded
  'delivery.acked',
  // a failed attempt is recorded, its errand waits
  'delivery.failed',
  // a batch became a dead letter
  'delivery.dead',
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
  // a page of the lifecycle log is read, not copied
  'relay.followed',
  // the page and the position are committed, but not announced
  'relay.copied',
  // rows of the outbox are taken, not copied
  'outbox.read',
  // they are committed to the bus log, but not announced
  'outbox.copied',
);
