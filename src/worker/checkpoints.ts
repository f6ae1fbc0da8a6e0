/** The checkpoints of a worker. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: workerCheckpoints, checkpoint } = declareCheckpoints(
  // the worker holds runs and has begun none
  'worker.claimed',
  // a task has ended, which only the worker knows
  'worker.ended',
  // a report is about to be sent
  'worker.report',
  // the report is acknowledged, the worker has not taken note
  'worker.reported',
);
