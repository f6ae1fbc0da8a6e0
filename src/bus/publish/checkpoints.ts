/** Checkpoints of publishing, in a process of the role `api`. `test/chaos/bus-walk.ts` kills one there. */
import { declareCheckpoints } from '../../kernel/checkpoint.ts';

export const { names: publishCheckpoints, checkpoint } = declareCheckpoints(
  // events are valid, but not stored
  'publish.append',
  // events are committed, but no courier and no publisher knows it
  'publish.committed',
);
