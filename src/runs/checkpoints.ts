/** The checkpoints of claims and reports. A process of the role `api` passes them. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: runCheckpoints, checkpoint } = declareCheckpoints(
  // results are applied, but the runs that they made ready are not announced yet
  'report.applied',
);
