/** Checkpoints of a scheduler, in the process of its host. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: schedulerCheckpoints, checkpoint } = declareCheckpoints(
  // triggers are read and their missed instants known, nothing is written
  'triggers.settle',
  // missed instants that fire at once have fired, the marks have not moved past them
  'triggers.settle.fired',
  // catch-up is inserted in a transaction that has not moved the marks yet
  'triggers.settle.noted',
  'triggers.settled',
  // due triggers are taken from the queue, not fired
  'triggers.fire',
  // fired, not queued for their next instant; the runs are not offered
  'triggers.fired',
  // a piece of catch-up is read, not fired
  'catchup.piece',
  // fired, the progress is not recorded in the catch-up's row
  'catchup.fired',
  'catchup.advanced',
  // a piece of a backfill is read, not fired
  'backfills.piece',
  // fired and recorded, the runs are not offered
  'backfills.fired',
  // the backfill is over, its row does not record that
  'backfills.settle',
  'tokens.release',
  // tokens are released, the runs are not offered
  'tokens.released',
  // runs are ready, no hint is sent
  'dispatch.offer',
  'retries.queue',
  // retries have become runs, which are not offered
  'retries.queued',
  'leases.sweep',
  // lost runs are taken back, and not offered
  'leases.swept',
  // a change of a job is read, the trigger processor has not received it
  'updates.read',
  // a pass of retention begins: a scheduler that dies here has just come up
  'housekeeping.pass',
  // old rows are deleted
  'housekeeping.passed',
);
