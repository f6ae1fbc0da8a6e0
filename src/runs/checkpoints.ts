/** The checkpoints of claims and reports, which an API's process passes. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: runCheckpoints, checkpoint } = declareCheckpoints(
  // results have taken effect, the runs that they made ready are not offered
  'report.applied',
);
