/** Every endpoint of a tenant: the one table that says who may call what, and what goes in and out. */
import { fleetEndpoints } from './fleet.ts';
import { jobEndpoints } from './jobs.ts';
import { projectEndpoints } from './projects.ts';
import { runEndpoints } from './runs.ts';
import { taskEndpoints } from './tasks.ts';

export const tenantEndpoints = {
  ...projectEndpoints,
  ...jobEndpoints,
  ...taskEndpoints,
  ...runEndpoints,
  ...fleetEndpoints,
};

export type TenantEndpoints = typeof tenantEndpoints;
