/** The checkpoints of the endpoints that workers call. A process of the role `api` passes them. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: gatewayCheckpoints, checkpoint } = declareCheckpoints(
  'claim.ask',
  // runs are leased to a worker that does not know it yet
  'claim.made',
  'heartbeat.noted',
  // leases are renewed, but the worker does not know it yet
  'heartbeat.renewed',
  'report.received',
  // results are applied, but the worker does not know it yet
  'report.answer',
  // output is stored, but the worker does not know it yet
  'logs.kept',
);
