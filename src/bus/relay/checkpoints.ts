/** Checkpoints of the outbox of `millrace.publish()`, in a host. `test/chaos/bus-walk.ts` kills one there. */
import { declareCheckpoints } from '../../kernel/checkpoint.ts';

export const { names: outboxCheckpoints, checkpoint } = declareCheckpoints(
  // rows of the outbox are taken, not copied
  'outbox.read',
  // they are committed to the bus log, but not announced
  'outbox.copied',
);
