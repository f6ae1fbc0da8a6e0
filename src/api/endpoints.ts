/** The table of all endpoints of a tenant, with their access rules, inputs and responses. */
import { answerEndpoints } from './answers/endpoints.ts';
import { auditEndpoints } from './audit/endpoints.ts';
import { backfillEndpoints } from './backfills/endpoints.ts';
import { busSubscriberEndpoints } from './bus/endpoints.ts';
import { errandEndpoints } from './errands/endpoints.ts';
import { executionEndpoints } from './executions/endpoints.ts';
import { explainEndpoints } from './explain/endpoints.ts';
import { fleetEndpoints } from './fleet/endpoints.ts';
import { flowEndpoints } from './flows/endpoints.ts';
import { importEndpoints } from './imports/endpoints.ts';
import { instantEndpoints } from './instants/endpoints.ts';
import { jobViewEndpoints } from './jobs/view-endpoints.ts';
import { jobEndpoints } from './jobs/endpoints.ts';
import { overviewEndpoints } from './overview/endpoints.ts';
import { poolEndpoints } from './pools/endpoints.ts';
import { projectEndpoints } from './projects/endpoints.ts';
import { runEndpoints } from './runs/endpoints.ts';
import { topicEndpoints } from './bus/topics/endpoints.ts';
import { taskEndpoints } from './tasks/endpoints.ts';
import { triggerEndpoints } from './triggers/endpoints.ts';
import { workitemEndpoints } from './workitems/endpoints.ts';

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
  ...busSubscriberEndpoints,
  ...topicEndpoints,
  ...errandEndpoints,
  ...answerEndpoints,
  ...flowEndpoints,
  ...executionEndpoints,
  ...workitemEndpoints,
  ...importEndpoints,
};

export type TenantEndpoints = typeof tenantEndpoints;
