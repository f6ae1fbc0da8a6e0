/** Checkpoints of the limit by bytes, in a host. `test/chaos/bus-drop.test.ts` kills one there. */
import { declareCheckpoints } from '../../kernel/checkpoint.ts';

export const { names: dropCheckpoints, checkpoint } = declareCheckpoints(
  // what readers lose is counted, nothing is locked
  'drop.counted',
  // readers, dead letters, the partition and the event are written, but not committed
  'drop.written',
  // the piece is gone, and nobody was told
  'drop.committed',
);
