/** Every endpoint of a tenant: the one table that says who may call what, and what goes in and out. */
import { auditEndpoints } from './audit.ts';
import { backfillEndpoints } from './backfills.ts';
import { explainEndpoints } from './explain.ts';
import { fleetEndpoints } from './fleet.ts';
import { instantEndpoints } from './instants.ts';
import { jobViewEndpoints } from './job-views.ts';
import { jobEndpoints } from './jobs.ts';
import { overviewEndpoints } from './overview.ts';
import { poolEndpoints } from './pools.ts';
import { projectEndpoints } from './projects.ts';
import { runEndpoints } from './runs.ts';
import { taskEndpoints } from './tasks.ts';
import { triggerEndpoints } from './triggers.ts';

export const tenantEndpoints = {
  ...projectEndpoints,
  ...jobEndpoints,
  ...jobViewEndpoints,
  ...instantEndpoints,
  ...backfillEndpoints,
  ...taskEndpoints,
  ...triggerEndpoints,
  ...runEndpoints,
  ...poolEndpoints,
  ...fleetEndpoints,
  ...explainEndpoints,
  ...overviewEndpoints,
  ...auditEndpoints,
};

export type TenantEndpoints = typeof tenantEndpoints;
