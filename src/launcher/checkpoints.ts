/** The checkpoints of a launcher's turn. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: launcherCheckpoints, checkpoint } = declareCheckpoints(
  // the state of the installation is read, nothing is decided
  'turn.read',
  // the decisions are written, no host has been notified
  'turn.written',
  // a host was started, and has not registered
  'turn.spawned',
);
