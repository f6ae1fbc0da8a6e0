/** The checkpoints of a host. Its schedulers declare their own. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: hostCheckpoints, checkpoint } = declareCheckpoints(
  // the host holds the tenant's `singleton` lock, the scheduler is not started
  'scheduler.locked',
);
