/** The checkpoints of tenant life, which the process that creates, changes or drops a tenant passes. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: tenantCheckpoints, checkpoint } = declareCheckpoints(
  // the tenant's row exists, its database does not
  'tenant.registered',
  // its database exists, and is empty
  'tenant.made',
  // the RESTART is sent, the transaction that it waits for has done nothing
  'tenant.told',
  // the schema is installed, no process knows
  'tenant.installed',
  // the schema is at the new version, no process knows
  'tenant.upgraded',
  // the tenant is stopped to be dropped, and exists
  'tenant.stopped',
  // its database is gone, its row is not
  'tenant.dropped',
);
