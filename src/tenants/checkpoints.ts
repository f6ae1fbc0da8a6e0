/** Checkpoints in a process that creates, changes or drops a tenant. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: tenantCheckpoints, checkpoint } = declareCheckpoints(
  // the tenant's row exists, its database does not
  'tenant.registered',
  // its database exists, and is empty
  'tenant.made',
  // the RESTART is sent, the transaction that it waits for has done nothing
  'tenant.told',
  // the schema is installed, no process has been notified
  'tenant.installed',
  // the schema is at the new version, no process has been notified
  'tenant.upgraded',
  // the tenant is stopped to be dropped, its database still exists
  'tenant.stopped',
  // its database is gone, its row is not
  'tenant.dropped',
);
