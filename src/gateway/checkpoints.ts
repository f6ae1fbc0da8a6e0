/** The checkpoints of what workers call, which an API's process passes. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: gatewayCheckpoints, checkpoint } = declareCheckpoints(
  'claim.ask',
  // runs are leased to a worker that does not know
  'claim.made',
  'heartbeat.noted',
  // leases are renewed, the worker does not know
  'heartbeat.renewed',
  'report.received',
  // results have taken effect, the worker does not know
  'report.answer',
  // output is kept, the worker does not know
  'logs.kept',
);
