/** Every handler of a tenant's endpoints, but those that take job documents (apply.ts). */
import { activityHandlers } from './activity.ts';
import { auditOf } from './audit.ts';
import { backfillHandlers } from './backfills.ts';
import { changeHandlers } from './changes.ts';
import type { ApiHandlers } from './context.ts';
import type { TenantEndpoints } from './endpoints/table.ts';
import { eventHandlers } from './events.ts';
import { explainHandlers } from './explain.ts';
import { fleetHandlers } from './fleet.ts';
import { instantHandlers } from './instants.ts';
import { jobViewHandlers } from './job-views.ts';
import { jobHandlers } from './jobs.ts';
import { logHandlers } from './logs.ts';
import { overviewHandlers } from './overview.ts';
import { poolHandlers } from './pools.ts';
import { projectHandlers } from './projects.ts';
import { runViewHandlers } from './run-views.ts';
import { runHandlers } from './runs.ts';
import { search } from './search.ts';
import { stashHandlers } from './stash.ts';
import { taskHandlers } from './tasks.ts';
import { tokenHandlers } from './tokens.ts';
import { triggerHandlers } from './triggers.ts';

export type DocumentKeys = 'POST /api/jobs' | 'PUT /api/jobs' | 'POST /api/jobs/check' | 'GET /api/jobs/schema';

export const tenantHandlers: ApiHandlers<Omit<TenantEndpoints, DocumentKeys>> = {
  ...projectHandlers,
  ...jobHandlers,
  ...jobViewHandlers,
  ...tokenHandlers,
  ...instantHandlers,
  ...backfillHandlers,
  ...taskHandlers,
  ...triggerHandlers,
  ...runHandlers,
  ...runViewHandlers,
  ...logHandlers,
  ...eventHandlers,
  ...changeHandlers,
  ...poolHandlers,
  ...fleetHandlers,
  ...stashHandlers,
  ...explainHandlers,
  'GET /api/search': search,
  'GET /api/audit': auditOf,
  ...overviewHandlers,
  ...activityHandlers,
};
