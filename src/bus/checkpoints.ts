/** The checkpoints of the bus. A process of the role `api` passes those of `publish`. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: publishCheckpoints, checkpoint } = declareCheckpoints(
  // events are valid, but not stored
  'publish.append',
  // events are committed, but no courier and no publisher knows it
  'publish.committed',
);
