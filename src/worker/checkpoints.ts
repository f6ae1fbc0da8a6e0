/** The checkpoints of a worker. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: workerCheckpoints, checkpoint } = declareCheckpoints(
  // the worker holds runs, but has begun none
  'worker.claimed',
  // a task has ended, and only the worker knows it
  'worker.ended',
  // a report is about to be sent
  'worker.report',
  // the report is acknowledged, but the worker has not processed the answer
  'worker.reported',
);
